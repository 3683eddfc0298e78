#include "proto/plan/batch_sources.h"

#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

const std::vector<BatchSource>& BatchSources() {
  static const auto* const sources = new std::vector<BatchSource>{
      // The tokens of a window.
      {.name = kTokensSource,
       .elements = BatchElements::kTokens,
       .dims = {Dim::SEQUENCE},
       .may_be_ahead = true},
      // The token behind each. -1 where it does not count: of a prompt that is
      // not to be learned, behind the last token of an isolated document, in a
      // place past the last sample.
      {.name = kNextTokensSource,
       .elements = BatchElements::kTargets,
       .dims = {Dim::SEQUENCE},
       .may_be_ahead = true},
      // Where in its sequence the document of each token begins: of whole
      // sequences, however these are cut, as tokens attend to others.
      {.name = kDocumentStartsSource,
       .elements = BatchElements::kOffsets,
       .dims = {Dim::KEYS},
       .needs_documents = true},
      // Of each token, in its sequence; in its document where these are
      // isolated.
      {.name = "positions",
       .elements = BatchElements::kPositions,
       .dims = {Dim::SEQUENCE}},
  };
  return *sources;
}

const BatchSource* FindBatchSource(absl::string_view name) {
  for (const BatchSource& source : BatchSources()) {
    if (source.name == name) return &source;
  }
  return nullptr;
}

std::string BatchSourceNames() {
  return absl::StrJoin(BatchSources(), ", ",
                       [](std::string* text, const BatchSource& source) {
                         text->append(source.name.data(), source.name.size());
                       });
}

BatchTensor BatchTensorOf(absl::string_view name, absl::string_view source,
                          const MicroBatchShape& shape) {
  const BatchSource* const row = FindBatchSource(source);
  CHECK(row != nullptr) << "no source " << source;
  BatchTensor made;
  made.set_source(std::string(source));
  TensorSpec& tensor = *made.mutable_tensor();
  tensor.set_name(std::string(name));
  tensor.set_dtype(row->dtype);
  *tensor.add_dims() = DimOf({{Dim::BATCH, shape.sequences}});
  for (const Dim::Kind kind : row->dims) {
    *tensor.add_dims() = DimOf({{kind, shape.sequence_length}});
  }
  return made;
}

BatchTensor BatchTensorAhead(absl::string_view name, absl::string_view source,
                             int ahead, const MicroBatchShape& shape) {
  BatchTensor made = BatchTensorOf(name, source, shape);
  CHECK(FindBatchSource(source)->may_be_ahead) << source;
  made.set_ahead(ahead);
  return made;
}

}  // namespace troupe
