template <class Op, int PLACE> static __device__ __forceinline__ float over_team(float value) {
#pragma unroll
  for (int step = TEAM / 2; step > 0; step /= 2) {
    value = Op::join(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  return value;
}
