template <class Op, int PLACE> static __device__ __forceinline__ float over_team(float value) {
  __shared__ float parts[TEAM];
  parts[threadIdx.x] = value;
  __syncthreads();
#pragma unroll
  for (int step = TEAM / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) {
      parts[threadIdx.x] = Op::join(parts[threadIdx.x], parts[threadIdx.x + step]);
    }
    __syncthreads();
  }
  return parts[0];
}
