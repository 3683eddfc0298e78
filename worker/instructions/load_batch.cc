#include "worker/instructions/load_batch.h"

#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "proto/base/status.h"
#include "proto/plan/loaded_batch.h"
#include "proto/plan/replica_share.h"

namespace troupe {
namespace {

// The micro-batch's first sample among those that all ranks read in this step.
int64_t FirstPlace(const Call& call) {
  const RankState& state = call.state;
  const ReplicaShare share =
      ShareOf(state.plan->derived(),
              state.step.training ? Program::TRAIN : Program::VALIDATE,
              state.data_index());
  return (share.first + call.instruction.micro_batch()) *
         MicroBatchSequences(*state.plan);
}

absl::Status ReadSample(const Call& call, int64_t place, const SampleOut& out) {
  const RankState& state = call.state;
  if (state.step.training) {
    return state.data->Read(SamplesBefore(call) + place, out);
  }
  const JobSpec& job = state.plan->job();
  // Each step of an evaluation has further windows.
  const int64_t first = job.evaluate() ? SamplesBefore(call) : 0;
  const int64_t windows =
      std::min<int64_t>(job.training().validation_sequences(),
                        state.data->validation_windows() - first);
  if (place < windows) return state.data->ReadValidation(first + place, out);
  std::fill(out.tokens.begin(), out.tokens.end(), 0);
  std::fill(out.targets.begin(), out.targets.end(), -1);
  std::fill(out.documents.begin(), out.documents.end(), 0);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunLoadBatch(const Call& call) {
  RankState& state = call.state;
  const int64_t length = state.plan->job().training().sequence_length();
  std::vector<int32_t> tokens(length);
  std::vector<int32_t> targets(length);
  const LoadedBatch here = LoadedBy(*state.plan, state.rank());
  // Tokens of all sequences, then their targets, then documents of whole
  // sequences.
  std::vector<int32_t> host(BatchBytes(*state.plan) / sizeof(int32_t));
  const bool has_documents = LoadedDocuments(*state.plan) > 0;
  absl::Span<int32_t> documents;
  const auto keep = [&](const std::vector<int32_t>& sample, auto to) {
    for (const Range& run : here.positions) {
      to = std::copy(sample.begin() + run.begin, sample.begin() + run.end, to);
    }
    return to;
  };
  auto to_tokens = host.begin();
  auto to_targets = host.begin() + LoadedTokens(*state.plan);
  absl::Span<int32_t> to_documents =
      absl::MakeSpan(host).subspan(2 * LoadedTokens(*state.plan));
  const int64_t first = FirstPlace(call);
  for (int64_t i = here.samples.begin; i < here.samples.end; ++i) {
    if (has_documents) {
      documents = to_documents.subspan(0, length);
      to_documents.remove_prefix(length);
    }
    RETURN_IF_ERROR(ReadSample(call, first + i,
                               {.tokens = absl::MakeSpan(tokens),
                                .targets = absl::MakeSpan(targets),
                                .documents = documents}));
    to_tokens = keep(tokens, to_tokens);
    to_targets = keep(targets, to_targets);
  }
  // Here, so that the passes need not read it.
  if (state.step.training) RETURN_IF_ERROR(TargetsThatCount(call).status());
  return state.batches->Copy(NeedOperand(call, Instruction::BATCH), host.data(),
                             host.size() * sizeof(int32_t));
}

}  // namespace troupe
