// A small SentencePiece model, written byte by byte, for tests that cannot link
// the library that makes such models: its protobuf collides with gRPC's.
#ifndef TROUPE_TESTS_STORAGE_DATASET_SENTENCEPIECE_WRITTEN_MODEL_H_
#define TROUPE_TESTS_STORAGE_DATASET_SENTENCEPIECE_WRITTEN_MODEL_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_format.h"
#include "storage/dataset/sentencepiece/model.h"
#include "storage/engine/little_endian.h"

namespace troupe {

// A field of a protobuf message: bytes, or a small number.
inline std::string WrittenField(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>((number & 15) << 3 | 2));
  if (number > 15) {
    out[0] = static_cast<char>(out[0] | 0x80);
    out += static_cast<char>(number >> 4);
  }
  for (size_t size = bytes.size();; size >>= 7) {
    out += static_cast<char>((size & 0x7F) | (size > 0x7F ? 0x80 : 0));
    if (size <= 0x7F) break;
  }
  return out + bytes;
}
inline std::string WrittenField(int number, int value) {
  std::string out = WrittenField(number, "");
  out[0] = static_cast<char>(out[0] & ~7);
  out.back() = static_cast<char>(value);
  return out;
}

inline std::string WrittenPiece(const std::string& text, float score,
                                PieceType type) {
  char bits[4];
  uint32_t value;
  memcpy(&value, &score, sizeof(value));
  StoreLittleEndian<uint32_t>(value, bits);
  return WrittenField(1, WrittenField(1, text) + "\x15" + std::string(bits, 4) +
                             WrittenField(3, static_cast<int>(type)));
}

struct WrittenModelArgs {
  int kind = 1;  // unigram; 2: bpe
  bool byte_fallback = true;
  bool pad = false;
  std::string more;  // pieces
  std::string table;
  bool dummy_prefix = true;
};
inline std::string WrittenModel(const WrittenModelArgs& args) {
  std::string bytes = WrittenPiece("<unk>", 0, PieceType::kUnknown) +
                      WrittenPiece("<s>", 0, PieceType::kControl) +
                      WrittenPiece("</s>", 0, PieceType::kControl);
  if (args.pad) bytes += WrittenPiece("<pad>", 0, PieceType::kControl);
  for (int byte = 0; args.byte_fallback && byte < 256; ++byte) {
    bytes +=
        WrittenPiece(absl::StrFormat("<0x%02X>", byte), 0, PieceType::kByte);
  }
  const char* texts[] = {"\u2581", "a", "b", "ab", "\u2581ab", "s"};
  float score = -1;
  for (const char* text : texts)
    bytes += WrittenPiece(text, score--, PieceType::kNormal);
  bytes += args.more;
  bytes += WrittenField(2, WrittenField(3, args.kind) +
                               WrittenField(35, int{args.byte_fallback}));
  bytes += WrittenField(
      3, (args.table.empty() ? "" : WrittenField(2, args.table)) +
             WrittenField(3, int{args.dummy_prefix}) + WrittenField(4, 0));
  return bytes;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_DATASET_SENTENCEPIECE_WRITTEN_MODEL_H_
