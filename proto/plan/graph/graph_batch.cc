#include "proto/plan/graph/graph_batch.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/plan/batch_sources.h"

namespace troupe {
namespace {

constexpr size_t kBatchNameMax = 256;  // bytes
constexpr int kBatchTensorsMax = 64;

std::string SourcesOfGraphs() {
  std::vector<absl::string_view> names;
  for (const BatchSource& source : BatchSources()) {
    if (!source.needs_documents) names.push_back(source.name);
  }
  return absl::StrJoin(names, ", ");
}

class BatchReader {
 public:
  BatchReader(const GraphText& text, const MicroBatchShape& shape)
      : text_(text), shape_(shape) {}

  absl::StatusOr<BatchSchema> Run() {
    const auto& declared = text_.graph.batch();
    if (declared.size() > kBatchTensorsMax) {
      return text_.Error(
          text_.batch_lines[kBatchTensorsMax],
          absl::StrCat("the batch has ", declared.size(),
                       " tensors; use at most ", kBatchTensorsMax));
    }
    for (at_ = 0; at_ < declared.size(); ++at_) {
      RETURN_IF_ERROR(Add(declared[at_]));
    }
    if (declared.empty()) {
      *batch_.Add() = BatchTensorOf(kBatchTokens, kTokensSource, shape_);
      *batch_.Add() = BatchTensorOf(kBatchTargets, kNextTokensSource, shape_);
    }
    return std::move(batch_);
  }

 private:
  absl::Status Error(const GraphBatch& tensor, absl::string_view what) const {
    return text_.Error(
        text_.batch_lines[at_],
        absl::StrCat("tensor \"", OneLine(tensor.name(), kBatchNameMax),
                     "\" of the batch ", what));
  }

  absl::Status Add(const GraphBatch& tensor) {
    const std::string& name = tensor.name();
    if (name.empty() || absl::StrContains(name, ':') ||
        !IsOneLine(name, kBatchNameMax)) {
      return Error(tensor, "needs a name, of one line and without a colon");
    }
    if (name == kBatchDocuments) {
      return Error(tensor,
                   "has the name of what data.isolate_documents loads; use "
                   "another");
    }
    if (!names_.insert(name).second) return Error(tensor, "is there twice");
    const BatchSource* const source = FindBatchSource(tensor.source());
    if (source == nullptr || source->needs_documents) {
      return Error(tensor, absl::StrCat("is of source \"",
                                        OneLine(tensor.source(), kBatchNameMax),
                                        "\", which does not exist; use one of ",
                                        SourcesOfGraphs()));
    }
    RETURN_IF_ERROR(CheckDims(tensor, *source));
    *batch_.Add() = BatchTensorOf(name, source->name, shape_);
    return absl::OkStatus();
  }

  // Those that are given are those that the source makes.
  absl::Status CheckDims(const GraphBatch& tensor,
                         const BatchSource& source) const {
    std::vector<std::string> given;
    bool counts = false;
    for (const GraphBatch::Dim& dim : tensor.dim()) {
      given.push_back(GraphBatch::Dim::Kind_IsValid(dim.kind())
                          ? GraphBatch::Dim::Kind_Name(dim.kind())
                          : absl::StrCat(dim.kind()));
      counts |= dim.has_count();
    }
    std::vector<std::string> made;
    for (const Dim::Kind kind : source.dims) {
      made.push_back(Dim::Kind_Name(kind));
    }
    if (!given.empty() && given != made) {
      return Error(tensor, absl::StrCat("has dims ", absl::StrJoin(given, ", "),
                                        "; source ", source.name, " makes ",
                                        absl::StrJoin(made, ", ")));
    }
    if (!counts) return absl::OkStatus();
    return Error(tensor,
                 "has a dim with a count; leave it out: a SEQUENCE is as long "
                 "as training.sequence_length says");
  }

  const GraphText& text_;
  const MicroBatchShape& shape_;
  BatchSchema batch_;
  std::set<std::string> names_;
  int at_ = 0;
};

}  // namespace

absl::StatusOr<BatchSchema> ReadGraphBatch(const GraphText& text,
                                           const MicroBatchShape& shape) {
  return BatchReader(text, shape).Run();
}

}  // namespace troupe
