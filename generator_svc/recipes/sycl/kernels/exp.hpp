{# Exponential with the Taylor series of 2^f on [-0.5, 0.5]: relative error below 4e-6. #}
static inline float recipe_scaled(float p, float shifted) {  // adds the last bits to the exponent
  const unsigned bits = __builtin_bit_cast(unsigned, shifted) << 23;
  return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, p) + bits);
}
{% if is_vector %}
static inline vec16 recipe_scaled(vec16 p, vec16 shifted) {
  const uvec16 bits = __builtin_bit_cast(uvec16, shifted) << 23;
  return __builtin_bit_cast(vec16, __builtin_bit_cast(uvec16, p) + bits);
}
{% endif %}
template <typename T> static inline T recipe_exp(T x) {  // 2^whole * polynomial
  x = x * 1.44269504f;
  x = x > T(-126.0f) ? x : T(-126.0f);
  x = x < T(127.0f) ? x : T(127.0f);
  const T shifted = x + 12582912.0f;  // 1.5 * 2^23: the sum's last bits are the whole part
  const T f = x - (shifted - 12582912.0f);
  T p = 1.5403530e-4f;
  p = p * f + 1.3333558e-3f;
  p = p * f + 9.6181291e-3f;
  p = p * f + 5.5504109e-2f;
  p = p * f + 2.4022651e-1f;
  p = p * f + 6.9314718e-1f;
  p = p * f + 1.0f;
  return recipe_scaled(p, shifted);
}
