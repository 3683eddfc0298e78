#include "worker/instructions/load_batch.h"

#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/batch.h"
#include "proto/plan/precision.h"
#include "proto/plan/replica_share.h"
#include "worker/instructions/fill_sample.h"

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

absl::Status ReadSample(const Call& call, int64_t place, TokenSample& sample) {
  const RankState& state = call.state;
  const SampleOut out = {.tokens = absl::MakeSpan(sample.tokens),
                         .targets = absl::MakeSpan(sample.targets),
                         .documents = absl::MakeSpan(sample.documents)};
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

// One tensor of the batch on this rank, sample after sample.
class Loading {
 public:
  Loading(const BatchTensor& tensor, const MeshPlace& place, FillSample fill,
          char* to)
      : piece_(LoadedBy(tensor, place)),
        fill_(fill),
        ahead_(tensor.ahead()),
        element_bytes_(BytesOfElement(tensor.tensor().dtype())),
        to_(to) {
    int64_t whole = 1;
    int64_t local = 1;
    for (const LoadedPiece::OfDim& dim : piece_.dims) {
      whole *= dim.whole;
      local *= dim.local;
    }
    whole_.resize(whole * element_bytes_);
    sample_bytes_ = local * element_bytes_;
  }

  const Range& samples() const { return piece_.samples; }

  // In ascending order, all that are in samples().
  void Add(const TokenSample& sample) {
    fill_(sample, ahead_, whole_.data());
    CopyPiece(piece_, element_bytes_, whole_.data(), to_);
    to_ += sample_bytes_;
  }

 private:
  const LoadedPiece piece_;
  const FillSample fill_;
  const int ahead_;
  const int64_t element_bytes_;
  char* to_;
  std::vector<char> whole_;  // of one sample
  int64_t sample_bytes_ = 0;
};

absl::StatusOr<std::vector<Loading>> LoadingsOf(const RankState& state,
                                                char* to) {
  const BatchSchema& batch = state.plan->batch();
  const std::vector<int64_t> offsets = BatchOffsets(batch);
  const std::vector<bool> loaded = LoadedTensors(*state.plan, state.rank());
  std::vector<Loading> loadings;
  for (int i = 0; i < batch.size(); ++i) {
    if (!loaded[i]) continue;
    ASSIGN_OR_RETURN(const FillSample fill, FindFillSample(batch[i].source()));
    loadings.emplace_back(batch[i], state.place(), fill, to + offsets[i]);
  }
  return loadings;
}

// From the first sample of any tensor to the last.
Range SamplesOf(const std::vector<Loading>& loadings) {
  CHECK(!loadings.empty()) << "a batch of no tensors";
  Range all = loadings.front().samples();
  for (const Loading& loading : loadings) {
    all.begin = std::min(all.begin, loading.samples().begin);
    all.end = std::max(all.end, loading.samples().end);
  }
  return all;
}

}  // namespace

absl::Status RunLoadBatch(const Call& call) {
  RankState& state = call.state;
  const JobSpec& job = state.plan->job();
  std::vector<char> host(BatchBytes(*state.plan));
  ASSIGN_OR_RETURN(std::vector<Loading> loadings,
                   LoadingsOf(state, host.data()));
  const int64_t length = job.training().sequence_length();
  TokenSample sample = {.tokens = std::vector<int32_t>(length),
                        .targets = std::vector<int32_t>(length),
                        .documents = {}};
  if (job.data().isolate_documents()) sample.documents.resize(length);
  const int64_t first = FirstPlace(call);
  const Range samples = SamplesOf(loadings);
  for (int64_t i = samples.begin; i < samples.end; ++i) {
    RETURN_IF_ERROR(ReadSample(call, first + i, sample));
    for (Loading& loading : loadings) {
      const Range& own = loading.samples();
      if (i >= own.begin && i < own.end) loading.Add(sample);
    }
  }
  // Here, so that the passes need not read it.
  if (state.step.training) RETURN_IF_ERROR(TargetsThatCount(call).status());
  return state.batches->Copy(NeedOperand(call, Instruction::BATCH), host.data(),
                             host.size());
}

}  // namespace troupe
