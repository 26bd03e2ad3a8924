template <int N> struct Words;
template <> struct Words<1> { typedef float Word; };
template <> struct Words<2> { typedef float2 Word; };
template <> struct Words<4> { typedef float4 Word; };
typedef Words<VEC>::Word Word;
union Pack {  // VEC neighbouring elements: one access to memory
  Word word;
  float v[VEC];
};
static __device__ __forceinline__ Pack load(const float* from) {
  Pack pack;
  pack.word = __ldg(reinterpret_cast<const Word*>(from));
  return pack;
}
{% if is_streaming %}
static __device__ __forceinline__ Pack load_last(const float* from) {  // first out of the cache
  Pack pack;
  pack.word = __ldcs(reinterpret_cast<const Word*>(from));
  return pack;
}
static __device__ __forceinline__ void store(float* to, const Pack& pack) {
  __stcs(reinterpret_cast<Word*>(to), pack.word);
}
{% else %}
static __device__ __forceinline__ void store(float* to, const Pack& pack) {
  __stwb(reinterpret_cast<Word*>(to), pack.word);  // an assignment becomes VEC scalar stores
}
{% endif %}
