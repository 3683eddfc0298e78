// Cuts a normalized text into the pieces of a SentencePiece model.
//
//  * unigram: the segmentation with the highest sum of scores, by dynamic
//    programming from left to right (Kudo, "Subword Regularization", 2018).
//  * bpe: from single characters on, always merges the neighbours whose union
//    is the piece with the highest score, the leftmost of equals (Sennrich et
//    al., "Neural Machine Translation of Rare Words with Subword Units", 2016).
//
// Both give the ids that the SentencePiece library gives for UTF-8.
#ifndef TROUPE_STORAGE_DATASET_SENTENCEPIECE_SEGMENTER_H_
#define TROUPE_STORAGE_DATASET_SENTENCEPIECE_SEGMENTER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/dataset/sentencepiece/model.h"
#include "storage/dataset/sentencepiece/piece_trie.h"

namespace troupe {

struct TextSegment {
  absl::string_view text;  // of the normalized text
  int32_t id = 0;          // unknown_id where it is no piece
};

// Immutable; thread-safe.
class Segmenter {
 public:
  virtual ~Segmenter() = default;
  // In the order of the text, of which they leave nothing out.
  virtual std::vector<TextSegment> Cut(absl::string_view normalized) const = 0;
};

// Borrow the model and the trie of its user-defined pieces.
std::unique_ptr<Segmenter> MakeUnigramSegmenter(
    const SentencePieceModel& model);
std::unique_ptr<Segmenter> MakeBpeSegmenter(const SentencePieceModel& model,
                                            const PieceTrie& user_defined);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_SENTENCEPIECE_SEGMENTER_H_
