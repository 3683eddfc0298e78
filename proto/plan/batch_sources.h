// What a tensor of the batch may be of a sample of the job's data: a row for
// each source. A schema names them (BatchTensor.source); how a worker makes one
// is a row of worker/instructions/fill_sample.cc.
//
// To add one: a row here and one there (docs/how_to_add/batch_source.md).
#ifndef TROUPE_PROTO_PLAN_BATCH_SOURCES_H_
#define TROUPE_PROTO_PLAN_BATCH_SOURCES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/plan/micro_batch.h"
#include "proto/unit.pb.h"

namespace troupe {

// What the elements of a source are.
enum class BatchElements {
  kTokens,     // ids below the size of the vocabulary
  kPositions,  // ids below the length of a sequence
  kTargets,    // ids as tokens are; -1: a loss leaves it out
  kOffsets,    // positions where something begins
  kNumbers,    // values that an op computes with
};

struct BatchSource {
  absl::string_view name;
  BatchElements elements = BatchElements::kNumbers;
  ElementType dtype = I32;
  std::vector<Dim::Kind> dims;  // of one sample
  // Only of data whose documents are isolated.
  bool needs_documents = false;
  // A tensor may have what is some places further (BatchTensor.ahead).
  bool may_be_ahead = false;
};

const std::vector<BatchSource>& BatchSources();
// Null where there is none of that name.
const BatchSource* FindBatchSource(absl::string_view name);
// "tokens, next_tokens, ...", for messages.
std::string BatchSourceNames();

// The tensors that models of language read, by the names that they have there.
inline constexpr char kBatchTokens[] = "tokens";
inline constexpr char kBatchTargets[] = "targets";
// Of jobs that isolate documents, which alone have it.
inline constexpr char kBatchDocuments[] = "documents";
inline constexpr char kTokensSource[] = "tokens";
inline constexpr char kNextTokensSource[] = "next_tokens";
inline constexpr char kDocumentStartsSource[] = "document_starts";

// A tensor of the source, of all samples of a micro-batch. REQUIRES that there
// is such a source.
BatchTensor BatchTensorOf(absl::string_view name, absl::string_view source,
                          const MicroBatchShape& shape);
// `ahead` places further. REQUIRES a source that may be.
BatchTensor BatchTensorAhead(absl::string_view name, absl::string_view source,
                             int ahead, const MicroBatchShape& shape);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_BATCH_SOURCES_H_
