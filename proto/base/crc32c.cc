#include "proto/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace troupe {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    }
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t ExtendPortable(uint32_t crc, absl::string_view data) {
  for (const char c : data) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendSse42(uint32_t crc,
                                                       absl::string_view data) {
  uint64_t wide = crc;
  while (data.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, data.data(), 8);
    wide = _mm_crc32_u64(wide, word);
    data.remove_prefix(8);
  }
  return ExtendPortable(static_cast<uint32_t>(wide), data);
}
#endif

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~ExtendSse42(~crc, data);
#endif
  return ~ExtendPortable(~crc, data);
}

}  // namespace troupe
