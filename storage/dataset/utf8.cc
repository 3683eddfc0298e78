#include "storage/dataset/utf8.h"

#include <algorithm>
#include <cstdint>

namespace troupe {
namespace {

bool IsContinuation(char byte) { return (byte & 0xC0) == 0x80; }

// What the first byte says; 0 for one that begins no character.
size_t AnnouncedBytes(char first) {
  const uint8_t byte = static_cast<uint8_t>(first);
  if (byte < 0x80) return 1;
  if (byte < 0xC2) return 0;  // a continuation, or overlong
  if (byte < 0xE0) return 2;
  if (byte < 0xF0) return 3;
  return byte < 0xF5 ? 4 : 0;
}

}  // namespace

size_t CharacterBytes(absl::string_view text) {
  if (text.empty()) return 0;
  const size_t bytes = AnnouncedBytes(text[0]);
  if (bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  if (bytes < 3) return bytes;
  const uint8_t first = static_cast<uint8_t>(text[0]);
  const uint8_t second = static_cast<uint8_t>(text[1]);
  const bool overlong =
      (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool beyond = first == 0xF4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : bytes;
}

size_t UnfinishedBytes(absl::string_view text) {
  for (size_t tail = 1; tail <= std::min<size_t>(3, text.size()); ++tail) {
    const char byte = text[text.size() - tail];
    if (IsContinuation(byte)) continue;
    return AnnouncedBytes(byte) > tail ? tail : 0;
  }
  return 0;
}

}  // namespace troupe
