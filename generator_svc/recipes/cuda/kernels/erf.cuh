{# Rational approximation of the error function. Source: the one that XLA and Eigen use. #}
static __device__ __forceinline__ float recipe_erf(float x) {  // rational, float32 accuracy
  x = fminf(fmaxf(x, -4.0f), 4.0f);
  const float s = x * x;
  float p = -2.72614225801306e-10f;
  p = fmaf(p, s, 2.77068142495902e-08f);
  p = fmaf(p, s, -2.10102402082508e-06f);
  p = fmaf(p, s, -5.69250639462346e-05f);
  p = fmaf(p, s, -7.34990630326855e-04f);
  p = fmaf(p, s, -2.95459980854025e-03f);
  p = fmaf(p, s, -1.60960333262415e-02f);
  float q = -1.45660718464996e-05f;
  q = fmaf(q, s, -2.13374055278905e-04f);
  q = fmaf(q, s, -1.68282697438203e-03f);
  q = fmaf(q, s, -7.37332916720468e-03f);
  q = fmaf(q, s, -1.42647390514189e-02f);
  return __fdividef(x * p, q);
}
