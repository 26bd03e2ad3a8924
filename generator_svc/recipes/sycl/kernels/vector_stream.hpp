static inline void stream(float* to, int i, vec16 value, bool lines) {
  if (lines) __builtin_nontemporal_store((line16)value, (line16*)(to + i));
  else *(vec16*)(to + i) = value;
}
static inline void stream(float* to, int i, float value, bool) { to[i] = value; }
