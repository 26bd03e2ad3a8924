template <class Op, int PLACE> static __device__ __forceinline__ float over_team(float value) {
  __shared__ float parts[TEAM / 32];  // one for each PLACE: no barrier before its next use
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    value = Op::join(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[threadIdx.x % (TEAM / 32)];
#pragma unroll
  for (int step = TEAM / 64; step > 0; step /= 2) {
    value = Op::join(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  return value;
}
