#include "adapters/noise/noise.h"

#include <algorithm>

#include "adapters/noise/normal.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define MERGEPLAN_AVX2 1
#include <immintrin.h>
#endif

namespace mergeplan {
namespace {

constexpr int kLanes = 8;

// The words of eight blocks, [word][block], as 32 normal numbers.
MERGEPLAN_HOST_DEVICE void Normals(const std::uint32_t (*words)[kLanes], float* out) {
  for (int half = 0; half < 2; ++half) {
    float* first = out + 2 * kLanes * half;
    for (int l = 0; l < kLanes; ++l) {
      NormalPair(words[2 * half][l], words[2 * half + 1][l], first + l, first + kLanes + l);
    }
  }
}

}  // namespace

StreamName StreamName::Of(std::uint64_t seed, int first, int last, int lane) {
  // Philox itself hashes: under a fixed key it maps 128 bits one to one.
  const PhiloxWords hash =
      Philox({{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
               static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)}},
             {{static_cast<std::uint32_t>(lane), 0x6d706c6e}});
  return {{{hash.w[0], hash.w[1]}}, {hash.w[2], hash.w[3]}};
}

void FillGroupsPlain(const StreamName& name, std::uint64_t first, std::int64_t groups, float* out) {
  for (std::int64_t g = 0; g < groups; ++g) {
    std::uint32_t words[4][kLanes];
    for (int l = 0; l < kLanes; ++l) {
      const PhiloxWords block =
          name.Words((first + static_cast<std::uint64_t>(g)) * kLanes + static_cast<unsigned>(l));
      for (int w = 0; w < 4; ++w) words[w][l] = block.w[w];
    }
    Normals(words, out + kNoiseGroup * g);
  }
}

#if defined(MERGEPLAN_AVX2)

// Four blocks in one register, every word in the lower half of 64 bits, where vpmuludq wants it.
// What is left in the upper halves is not read.
__attribute__((target("avx2"))) static void FillGroupsWide(const StreamName& name,
                                                           std::uint64_t first, std::int64_t groups,
                                                           float* out) {
  const __m256i multiply0 = _mm256_set1_epi64x(kPhiloxMultiply0);
  const __m256i multiply1 = _mm256_set1_epi64x(kPhiloxMultiply1);
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::uint64_t block = (first + static_cast<std::uint64_t>(g)) * kLanes;
    const __m256i low = _mm256_set1_epi64x(static_cast<std::uint32_t>(block));
    const __m256i high = _mm256_set1_epi64x(static_cast<long long>(block >> 32));
    const __m256i name0 = _mm256_set1_epi64x(name.counter[0]);
    const __m256i name1 = _mm256_set1_epi64x(name.counter[1]);
    __m256i even[4] = {_mm256_add_epi64(low, _mm256_setr_epi64x(0, 2, 4, 6)), high, name0, name1};
    __m256i odd[4] = {_mm256_add_epi64(low, _mm256_setr_epi64x(1, 3, 5, 7)), high, name0, name1};
    PhiloxKey key = name.key;
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const __m256i key0 = _mm256_set1_epi64x(key.k[0]), key1 = _mm256_set1_epi64x(key.k[1]);
      for (__m256i* c : {even, odd}) {
        const __m256i p0 = _mm256_mul_epu32(c[0], multiply0);
        const __m256i p1 = _mm256_mul_epu32(c[2], multiply1);
        c[0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c[1]), key0);
        c[1] = p1;
        c[2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c[3]), key1);
        c[3] = p0;
      }
      key.k[0] += kPhiloxWeyl0;
      key.k[1] += kPhiloxWeyl1;
    }
    alignas(32) std::uint32_t words[4][kLanes];
    for (int w = 0; w < 4; ++w) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(words[w]),
                         _mm256_blend_epi32(even[w], _mm256_slli_epi64(odd[w], 32), 0xAA));
    }
    Normals(words, out + kNoiseGroup * g);
  }
}

bool FillGroupsAvx2(const StreamName& name, std::uint64_t first, std::int64_t groups, float* out) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) FillGroupsWide(name, first, groups, out);
  return has_avx2;
}

#else

bool FillGroupsAvx2(const StreamName&, std::uint64_t, std::int64_t, float*) { return false; }

#endif

void NoiseStream::FillAt(std::uint64_t position, float* out, std::int64_t count) const {
  const auto fill = [this](std::uint64_t first, std::int64_t groups, float* to) {
    if (!FillGroupsAvx2(name_, first, groups, to)) FillGroupsPlain(name_, first, groups, to);
  };
  while (count > 0) {
    const std::uint64_t group = position / kNoiseGroup;
    const auto skip = static_cast<std::int64_t>(position % kNoiseGroup);
    std::int64_t done = count / kNoiseGroup * kNoiseGroup;
    if (skip == 0 && done > 0) {
      fill(group, done / kNoiseGroup, out);
    } else {  // a piece of a group
      float whole[kNoiseGroup];
      fill(group, 1, whole);
      done = std::min(count, kNoiseGroup - skip);
      std::copy_n(whole + skip, done, out);
    }
    position += static_cast<std::uint64_t>(done);
    out += done;
    count -= done;
  }
}

}  // namespace mergeplan
