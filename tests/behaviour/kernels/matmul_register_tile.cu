#define TM 4
#define TN 4
#define TK 16
extern "C" __global__ void mm(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float ta[64 * TK], tb[64 * TK];
  const int ty = threadIdx.y, tx = threadIdx.x;
  const int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
  float acc[TM][TN] = {};
  const int lane = ty * 16 + tx;
  for (int t = 0; t < k; t += TK) {
    for (int e = lane; e < 64 * TK; e += 256) {
      const int r = e / TK, q = e % TK;
      ta[e] = row0 + r < m && t + q < k ? a[(row0 + r) * k + t + q] : 0.0f;
    }
    for (int e = lane; e < 64 * TK; e += 256) {
      const int q = e / 64, r = e % 64;
      tb[e] = t + q < k && col0 + r < n ? b[(t + q) * n + col0 + r] : 0.0f;
    }
    __syncthreads();
    for (int q = 0; q < TK; ++q) {
      float fa[TM], fb[TN];
      for (int i = 0; i < TM; ++i) fa[i] = ta[(ty * TM + i) * TK + q];
      for (int j = 0; j < TN; ++j) fb[j] = tb[q * 64 + tx + 16 * j];
      for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) acc[i][j] += fa[i] * fb[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN; ++j) {
      const int r = row0 + ty * TM + i, q = col0 + tx + 16 * j;
      if (r < m && q < n) c[r * n + q] = acc[i][j];
    }
}
