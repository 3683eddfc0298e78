#include "storage/dataset/sentencepiece/model.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/engine/little_endian.h"

namespace troupe {
namespace {

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("no SentencePiece model, or a damaged one: ", what));
}

// One field of a protobuf message; a group or an unknown wire type is none.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;       // varint, or the bits of a fixed32 or fixed64
  absl::string_view bytes;  // length-delimited
};

absl::StatusOr<uint64_t> TakeVarint(absl::string_view& from) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(from[0]);
    from.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return Damaged("a number does not end");
}

absl::StatusOr<absl::string_view> TakeBytes(uint64_t count,
                                            absl::string_view& from) {
  if (count > from.size()) return Damaged("it is truncated");
  const absl::string_view bytes = from.substr(0, count);
  from.remove_prefix(count);
  return bytes;
}

absl::StatusOr<Field> TakeField(absl::string_view& from) {
  ASSIGN_OR_RETURN(const uint64_t key, TakeVarint(from));
  Field field{.number = key >> 3};
  switch (key & 7) {
    case 0: {
      ASSIGN_OR_RETURN(field.value, TakeVarint(from));
      return field;
    }
    case 1: {
      ASSIGN_OR_RETURN(const absl::string_view bits, TakeBytes(8, from));
      field.value = LoadLittleEndian<uint64_t>(bits.data());
      return field;
    }
    case 2: {
      ASSIGN_OR_RETURN(const uint64_t count, TakeVarint(from));
      ASSIGN_OR_RETURN(field.bytes, TakeBytes(count, from));
      return field;
    }
    case 5: {
      ASSIGN_OR_RETURN(const absl::string_view bits, TakeBytes(4, from));
      field.value = LoadLittleEndian<uint32_t>(bits.data());
      return field;
    }
    default:
      return Damaged(absl::StrCat("wire type ", key & 7));
  }
}

// Calls `use` with each field of a message.
template <typename Use>
absl::Status ForEachField(absl::string_view message, Use use) {
  while (!message.empty()) {
    ASSIGN_OR_RETURN(const Field field, TakeField(message));
    RETURN_IF_ERROR(use(field));
  }
  return absl::OkStatus();
}

absl::Status AddPiece(absl::string_view message, SentencePieceModel& model) {
  SentencePiece piece;
  RETURN_IF_ERROR(ForEachField(message, [&](const Field& field) {
    if (field.number == 1) piece.text = std::string(field.bytes);
    if (field.number == 2) {
      const uint32_t bits = static_cast<uint32_t>(field.value);
      memcpy(&piece.score, &bits, sizeof(bits));
    }
    if (field.number == 3) {
      if (field.value < 1 || field.value > 6) {
        return Damaged(absl::StrCat("a piece of type ", field.value));
      }
      piece.type = static_cast<PieceType>(field.value);
    }
    return absl::OkStatus();
  }));
  if (piece.text.empty()) return Damaged("an empty piece");
  if (!std::isfinite(piece.score)) return Damaged("a score is no number");
  if (piece.type == PieceType::kUnknown) {
    if (model.unknown_id >= 0) return Damaged("two unknown pieces");
    model.unknown_id = static_cast<int32_t>(model.pieces.size());
  }
  model.pieces.push_back(std::move(piece));
  return absl::OkStatus();
}

absl::Status ReadTrainerSpec(absl::string_view message,
                             SentencePieceModel& model) {
  return ForEachField(message, [&](const Field& field) {
    switch (field.number) {
      case 3:
        if (field.value != 1 && field.value != 2) {
          return absl::InvalidArgumentError(
              absl::StrCat("a SentencePiece model of type ", field.value,
                           "; this program reads unigram (1) and bpe (2)"));
        }
        model.kind = static_cast<SegmentationKind>(field.value);
        break;
      case 24:
        if (field.value != 0) {
          return absl::InvalidArgumentError(
              "a SentencePiece model with spaces as suffixes "
              "(treat_whitespace_as_suffix), which this program does not read");
        }
        break;
      case 35:
        model.byte_fallback = field.value != 0;
        break;
      case 44:
        model.unknown_surface = std::string(field.bytes);
        break;
      case 46:
        model.bos_piece = std::string(field.bytes);
        break;
      case 47:
        model.eos_piece = std::string(field.bytes);
        break;
      case 48:
        model.pad_piece = std::string(field.bytes);
        break;
    }
    return absl::OkStatus();
  });
}

absl::Status ReadNormalizerSpec(absl::string_view message,
                                SentencePieceModel& model) {
  return ForEachField(message, [&](const Field& field) {
    if (field.number == 2) {
      model.precompiled_charsmap = std::string(field.bytes);
    }
    if (field.number == 3) model.add_dummy_prefix = field.value != 0;
    if (field.number == 4) model.remove_extra_whitespaces = field.value != 0;
    if (field.number == 5) model.escape_whitespaces = field.value != 0;
    return absl::OkStatus();
  });
}

// The byte that a text as "<0xE2>" stands for; -1: none.
int ByteOf(absl::string_view text) {
  constexpr absl::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !absl::ConsumePrefix(&text, "<0x") ||
      !absl::ConsumeSuffix(&text, ">")) {
    return -1;
  }
  const size_t high = kDigits.find(text[0]);
  const size_t low = kDigits.find(text[1]);
  if (high == kDigits.npos || low == kDigits.npos) return -1;
  return static_cast<int>(16 * high + low);
}

}  // namespace

std::vector<int32_t> BytePieces(const SentencePieceModel& model) {
  CHECK(model.byte_fallback);
  std::vector<int32_t> ids(256, -1);
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    if (piece.type != PieceType::kByte) continue;
    const int byte = ByteOf(piece.text);
    if (byte >= 0) ids[byte] = static_cast<int32_t>(id);
  }
  return ids;
}

absl::StatusOr<SentencePieceModel> ParseSentencePieceModel(
    absl::string_view bytes) {
  SentencePieceModel model;
  RETURN_IF_ERROR(ForEachField(bytes, [&](const Field& field) {
    if (field.number == 1) return AddPiece(field.bytes, model);
    if (field.number == 2) return ReadTrainerSpec(field.bytes, model);
    if (field.number == 3) return ReadNormalizerSpec(field.bytes, model);
    return absl::OkStatus();
  }));
  if (model.unknown_id < 0) return Damaged("it has no unknown piece");
  if (model.byte_fallback) {
    for (const int32_t id : BytePieces(model)) {
      if (id < 0) return Damaged("byte_fallback without all 256 bytes");
    }
  }
  return model;
}

}  // namespace troupe
