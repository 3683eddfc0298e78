// A SentencePiece model (https://github.com/google/sentencepiece,
// src/sentencepiece_model.proto), as Llama, Mistral, T5 and others come with:
// the pieces of its vocabulary, and how text is normalized and cut into them.
//
// Troupe reads these models itself. The library that trains them carries a
// protobuf of its own whose symbols collide with the one that gRPC needs, so
// no process can have both (docs/decisions/0004-sentencepiece-apart.md).
#ifndef TROUPE_STORAGE_DATASET_SENTENCEPIECE_MODEL_H_
#define TROUPE_STORAGE_DATASET_SENTENCEPIECE_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

// U+2581, which stands for a space in pieces.
inline constexpr absl::string_view kSpaceSymbol = "\xe2\x96\x81";

// The numbers are the file's.
enum class PieceType {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct SentencePiece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

enum class SegmentationKind { kUnigram = 1, kBpe = 2 };

struct SentencePieceModel {
  std::vector<SentencePiece> pieces;  // by id
  SegmentationKind kind = SegmentationKind::kUnigram;
  bool byte_fallback = false;  // unknown characters become bytes, <0x00> ...
  int32_t unknown_id = -1;
  // What the control pieces are called that have these meanings, where the
  // model has them.
  std::string bos_piece = "<s>";
  std::string eos_piece = "</s>";
  std::string pad_piece = "<pad>";
  std::string unknown_surface = " \xe2\x81\x87 ";
  // Of the normalizer.
  std::string precompiled_charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

// The 256 ids of <0x00> to <0xFF>. Requires byte_fallback.
std::vector<int32_t> BytePieces(const SentencePieceModel& model);

// InvalidArgument where `bytes` are no model, a damaged one, or of a kind that
// this program does not cut text by (words, characters).
absl::StatusOr<SentencePieceModel> ParseSentencePieceModel(
    absl::string_view bytes);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_SENTENCEPIECE_MODEL_H_
