typedef Along<BM, ROWS> Left;
typedef {{ right_kind }}<BN, COLS> Right;

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) product_tiles({{ parameters }}) {
  extern __shared__ float4 staged[];
  auto left = reinterpret_cast<float (*)[BK][BM + PAD]>(staged);
  auto right = reinterpret_cast<float (*)[BK][BN + PAD]>(left + STAGES);
