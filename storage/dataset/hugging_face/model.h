// What makes ids of one piece of a text (a tokenizer.json's "model").
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_MODEL_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/dataset/hugging_face/json_place.h"
#include "storage/dataset/hugging_face/pattern_seams.h"
#include "storage/dataset/hugging_face/split.h"
#include "storage/dataset/hugging_face/vocabulary.h"

namespace troupe {

// What a model works in, so that a piece needs no memory of its own: one a
// thread.
struct ModelScratch {
  // Of BPE: symbols as a doubly linked list, and pairs that wait.
  struct Symbol {
    int32_t id;
    int32_t before;
    int32_t after;
    bool gone;
  };
  struct Merge {
    uint32_t rank;
    int32_t position;
    int32_t id;
  };
  std::vector<Symbol> symbols;
  std::vector<Merge> merges;
  std::vector<int32_t> ids;
  std::vector<uint64_t> ranks;
  // Of Unigram: by byte, the best way to get there.
  struct Node {
    double score;
    int32_t id;
    size_t begin;
  };
  std::vector<Node> nodes;
  std::vector<TextSpan> spans;
  std::string text;
};

// Immutable; thread-safe.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  virtual const Vocabulary& vocabulary() const = 0;
  // Appends the ids of a piece that is not empty. InvalidArgument where the
  // model has no id for something that it cannot leave out.
  virtual absl::Status Tokenize(absl::string_view piece, ModelScratch& scratch,
                                std::vector<int32_t>& ids) const = 0;
  // Whether the ids of a piece are those of its two parts.
  virtual bool MayCut(const Seam& seam) const { return false; }
};

using TokenModelOr = absl::StatusOr<std::unique_ptr<const TokenModel>>;

// `byte_level`: pieces are bytes, which the vocabulary writes as characters
// (characters.h). InvalidArgument for what is not known or damaged.
TokenModelOr MakeBpeModel(const JsonPlace& place, bool byte_level);
TokenModelOr MakeUnigramModel(const JsonPlace& place, bool byte_level);
TokenModelOr MakeWordPieceModel(const JsonPlace& place, bool byte_level);

// Of the type that it says.
TokenModelOr MakeTokenModel(const JsonPlace& place, bool byte_level);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_MODEL_H_
