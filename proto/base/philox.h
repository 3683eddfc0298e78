// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011), and the two ways Troupe reads it.
//
// A number is a pure function of (seed, stream, index): there is no state to
// share, so any rank of any plan computes the same initial weight, dropout mask
// or data order for the same global element, on a CPU or a GPU, bit for bit.
#ifndef TROUPE_PROTO_BASE_PHILOX_H_
#define TROUPE_PROTO_BASE_PHILOX_H_

#include <array>
#include <cstdint>

namespace troupe {

// What a random number is for. Part of the key, so purposes never collide.
enum class RandomPurpose : uint32_t {
  kInitialWeights = 1,
  kDropout = 2,
  kDataOrder = 3,
  kSampling = 4,  // generation
  kTurns = 5,     // which replica comes next (proto/plan/turns.h)
};

// One stream of numbers, for example the dropout mask of one site in one step.
struct PhiloxStream {
  uint64_t seed = 0;
  RandomPurpose purpose = RandomPurpose::kInitialWeights;
  uint32_t site = 0;  // which tensor, unit or layer; below 2^24
  uint32_t step = 0;  // training step; 0 where there is none
};

// The ten rounds of Philox4x32.
constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xd2511f53u} * counter[0];
    const uint64_t p1 = uint64_t{0xcd9e8d57u} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(p0)};
    key = {key[0] + 0x9e3779b9u, key[1] + 0xbb67ae85u};
  }
  return counter;
}

// The four numbers of `block`; element i of a stream is number i % 4 of block
// i / 4. Counter: block low, block high, purpose and site, step. Key: seed.
constexpr std::array<uint32_t, 4> PhiloxBlock(const PhiloxStream& stream,
                                              uint64_t block) {
  return Philox4x32(
      {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
       (static_cast<uint32_t>(stream.purpose) << 24) | stream.site,
       stream.step},
      {static_cast<uint32_t>(stream.seed),
       static_cast<uint32_t>(stream.seed >> 32)});
}

constexpr uint32_t PhiloxUint32(const PhiloxStream& stream, uint64_t index) {
  return PhiloxBlock(stream, index / 4)[index % 4];
}

// In [0, 1): the top 24 bits, exactly representable in a float.
constexpr float PhiloxUniform(uint32_t bits) {
  return static_cast<float>(bits >> 8) * (1.0f / 16777216.0f);
}

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_PHILOX_H_
