#pragma unroll
    for (int k = 0; k < BK; ++k) {
      Quad a[TM / 4], b[TN / 4];
#pragma unroll
      for (int i = 0; i < TM / 4; ++i) a[i].word = *(const float4*)&left[now][k][my_m + i * 16];
#pragma unroll
      for (int j = 0; j < TN / 4; ++j) b[j].word = *(const float4*)&right[now][k][my_n + j * 32];
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
          sums[i][j] = fmaf(a[i / 4].v[i % 4], b[j / 4].v[j % 4], sums[i][j]);
        }
      }
    }
