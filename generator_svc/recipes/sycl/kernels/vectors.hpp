typedef float vec16 __attribute__((ext_vector_type(16), aligned(4)));  // at any element
typedef float line16 __attribute__((ext_vector_type(16)));         // at a whole cache line
typedef unsigned uvec16 __attribute__((ext_vector_type(16)));
static inline vec16 load(const float* from, int i) { return *(const vec16*)(from + i); }
static inline void store(float* to, int i, vec16 value) { *(vec16*)(to + i) = value; }
static inline void store(float* to, int i, float value) { to[i] = value; }
