// What blocks stored, read behind a ticket that does not order it.
extern "C" __global__ void unordered_ticket(const float* x, float* sums, unsigned* tickets, float* out, int n) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = x[blockIdx.x];
    last = atomicAdd(tickets, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last) out[threadIdx.x] = sums[threadIdx.x];
}
