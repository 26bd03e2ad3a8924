{# Lanes of a warp are 4 x 8; a thread's rows and columns come in fours, so that fragments are quads
   that lie side by side. Tiles are numbered so that GROUP of them below each other share the cache. #}
  constexpr int down = (ROWS + BM - 1) / BM, across = (COLS + BN - 1) / BN;
  const int group = blockIdx.x / (GROUP * across), inner = blockIdx.x % (GROUP * across);
  const int height = min(GROUP, down - group * GROUP);
  const int m0 = (group * GROUP + inner % height) * BM, n0 = inner / height * BN;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int my_m = warp / (BN / (8 * TN)) * (4 * TM) + lane / 8 * 4;
  const int my_n = warp % (BN / (8 * TN)) * (8 * TN) + lane % 8 * 4;
  constexpr int tiles = (DEPTH + BK - 1) / BK, share = (tiles + SPLIT - 1) / SPLIT;
  const int first = blockIdx.y * share, last = min(first + share, tiles);
  float sums[TM][TN] = {};
