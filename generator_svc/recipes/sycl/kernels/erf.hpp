{# Rational approximation of the error function. Source: the one that XLA and Eigen use. #}
template <typename T> static inline T recipe_erf(T x) {  // rational, float32 accuracy
  x = __builtin_elementwise_min(__builtin_elementwise_max(x, T(-4.0f)), T(4.0f));
  const T s = x * x;
  T p = -2.72614225801306e-10f;
  p = p * s + 2.77068142495902e-08f;
  p = p * s - 2.10102402082508e-06f;
  p = p * s - 5.69250639462346e-05f;
  p = p * s - 7.34990630326855e-04f;
  p = p * s - 2.95459980854025e-03f;
  p = p * s - 1.60960333262415e-02f;
  T q = -1.45660718464996e-05f;
  q = q * s - 2.13374055278905e-04f;
  q = q * s - 1.68282697438203e-03f;
  q = q * s - 7.37332916720468e-03f;
  q = q * s - 1.42647390514189e-02f;
  return x * p / q;
}
