// The weights of a Hugging Face directory, whichever way it keeps them: one
// model.safetensors, or several with model.safetensors.index.json; in F32,
// BF16, F16 or F64. Read in place, never as a whole.
//
//   ASSIGN_OR_RETURN(HuggingFaceWeights weights,
//                    HuggingFaceWeights::Open(directory));
//   RETURN_IF_ERROR(weights.CheckShape("model.norm.weight", {512}));
//   RETURN_IF_ERROR(weights.ReadF32("model.norm.weight", {0, 512}, out));
#ifndef TROUPE_STORAGE_CHECKPOINT_HUGGING_FACE_WEIGHTS_H_
#define TROUPE_STORAGE_CHECKPOINT_HUGGING_FACE_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/checkpoint/safetensors_reader.h"
#include "storage/checkpoint/tensor_box.h"

namespace troupe {

// Parts of one shape share the rows of a tensor: `rows` rows of part 0, as many
// of each other, then the next rows of part 0.
struct PartOfTensor {
  std::string tensor;
  int64_t parts = 1;
  int64_t index = 0;  // of this part
  int64_t rows = 1;   // of each in turn
};

// Of tensors that are one parameter of ours, the index'th: `each` is their name
// with `*` for the index.
std::string NameOfEach(absl::string_view each, int64_t index);

// Move-only; reads are thread-safe.
class HuggingFaceWeights {
 public:
  // Whether the directory has weights that Open would read.
  static absl::StatusOr<bool> AreIn(const std::string& directory);

  // Opens every file and checks it: headers, sizes, and that the index and the
  // files agree. NotFound where there are no safetensors. DataLoss or
  // InvalidArgument, with the file and what is wrong with it: a tensor that two
  // files have or that is not where the index says, or an index beside a single
  // file that it does not name (transformers would read the single file).
  static absl::StatusOr<HuggingFaceWeights> Open(const std::string& directory);

  // The same of one file, by its name in the directory. NotFound where there is
  // none.
  static absl::StatusOr<HuggingFaceWeights> OpenFile(
      const std::string& directory, const std::string& file);

  // From now on this part of a tensor is found under a name of its own.
  void AddPart(const std::string& name, const PartOfTensor& part);

  // From now on `count` tensors of one shape are found as one, [count, shape],
  // under a name of its own: NameOfEach(each, 0), NameOfEach(each, 1), ...
  void AddStack(const std::string& name, const std::string& each,
                int64_t count);

  // The output projection is this table of tokens. Where the files have it
  // under the projection's name only, it is found there from now on.
  void AddTied(const std::string& table);
  const std::vector<std::string>& tied() const { return tied_; }
  // What projections are called in the files.
  static absl::Span<const absl::string_view> ProjectionNames();

  const std::string& directory() const { return directory_; }
  // Of all files, in no order.
  std::vector<const SafetensorsTensor*> tensors() const;

  // Null where there is none. Published GPT-2 files leave out the
  // "transformer." that the names of the whole model begin with; both are
  // found. Of a part, the tensor that it is a part of; of a stack, its first.
  const SafetensorsTensor* Find(absl::string_view name) const;

  // NotFound with the name; InvalidArgument with both shapes where it has
  // another, or for a dtype that is none of the four.
  absl::Status CheckShape(absl::string_view name,
                          const std::vector<int64_t>& shape) const;

  // Elements [begin, begin + count) of the flattened tensor, as f32: exact from
  // F32, BF16 and F16. Uses at most kBufferBytes besides `out`. DataLoss names
  // an element that is NaN or infinite (check_numbers.h).
  absl::Status ReadF32(absl::string_view name, const FlatRange& range,
                       float* out) const;
  static constexpr int64_t kBufferBytes = int64_t{4} << 20;

 private:
  struct Place {
    const SafetensorsReader* file;
    const SafetensorsTensor* tensor;
  };
  explicit HuggingFaceWeights(std::string directory);
  absl::Status Add(const std::string& file);
  absl::Status ReadStack(const std::vector<std::string>& names,
                         const FlatRange& range, float* out) const;
  const Place* FindStored(absl::string_view name) const;
  const Place* FindPlace(absl::string_view name) const;
  absl::Status ReadStored(const Place& place, const FlatRange& range,
                          float* out) const;

  std::string directory_;
  std::vector<std::unique_ptr<SafetensorsReader>> files_;
  absl::flat_hash_map<std::string, Place> places_;
  absl::flat_hash_map<std::string, PartOfTensor> parts_;
  absl::flat_hash_map<std::string, std::vector<std::string>> stacks_;
  std::vector<std::string> tied_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_HUGGING_FACE_WEIGHTS_H_
