{# Copies from global to shared memory that no register holds. #}
static __device__ __forceinline__ void copy_async(float* to, const float* from, bool inside) {
  const unsigned place = (unsigned)__cvta_generic_to_shared(to);
  const int count = inside ? 4 : 0;  // the rest of the four bytes is filled with zeros
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place), "l"(from), "r"(count)
               : "memory");
}
static __device__ __forceinline__ void copy_quad_async(float* to, const float* from, bool inside) {
  const unsigned place = (unsigned)__cvta_generic_to_shared(to);
  const int count = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(count)
               : "memory");
}
static __device__ __forceinline__ void end_of_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
static __device__ __forceinline__ void wait_for_copies() {  // all groups but the newest STAGES - 2
  asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
}
