// The ranks of a job as one that writes a text with them between two programs,
// over the communicators that training has: all of Plan.decoding's world, or,
// where that has none, rank 0 by itself.
//
//   ASSIGN_OR_RETURN(auto peers, SamplePeers::Create(state, end));
//   ModelPart part = peers->Part();
//   ...
//   ASSIGN_OR_RETURN(const bool all, peers->AllReady(generator.ok()));
#ifndef TROUPE_WORKER_ENGINE_SAMPLE_PEERS_H_
#define TROUPE_WORKER_ENGINE_SAMPLE_PEERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "worker/collective/communicator.h"
#include "worker/engine/validated_weights.h"
#include "worker/model/decoding_peers.h"
#include "worker/model/generator.h"
#include "worker/rank/rank_state.h"

namespace troupe {

// One thread, which REQUIRES what ValidatedWeights does. All ranks make the
// same calls in the same order. Errors are of the communicators and the device.
class SamplePeers final : public DecodingPeers {
 public:
  // Borrows the state. From `end` on the text is at its end: SteadyNow()'s, of
  // the rank that draws first.
  static absl::StatusOr<std::unique_ptr<SamplePeers>> Create(RankState& state,
                                                             absl::Time end);
  ~SamplePeers() override;

  // What of the model this rank runs, and where its weights are. No runs: it
  // computes nothing for a validation, as a server, or a place of the pipeline
  // whose stages another holds, too; then it shares tokens only.
  ModelPart Part();

  bool together() const { return world_ != nullptr; }
  // Rank 0's numbers, to all.
  absl::Status ShareNumbers(std::vector<int32_t>& numbers);
  // Whether every rank is.
  absl::StatusOr<bool> AllReady(bool ready);
  // Whether the time is up; where ranks write together, as Share has found.
  bool late() const { return late_; }
  // DeadlineExceeded where the rank is alone and the time is up.
  absl::Status AloneInTime();

  absl::Status Exchange(const Op::Exchange& exchange, const Tensor& x,
                        const Tensor& y) override;
  absl::Status Receive(int unit, const Tensor& input) override;
  absl::Status HandOn(int unit, const Tensor& output) override;
  absl::Status BringWeights(int unit) override;
  // DeadlineExceeded, on all ranks, where the time is up.
  absl::StatusOr<int32_t> Share(int32_t token) override;

 private:
  SamplePeers(RankState& state, absl::Time end);

  // Of an index into the plan's groups; null: absent.
  absl::StatusOr<Communicator*> Find(absl::optional<int> group) const;
  absl::Status FindCommunicators();
  CommOptions OptionsFor(std::string what) const;
  // Place on the pipeline of the stage with that unit.
  int PlaceOf(int unit) const;
  // The member of `transfers_` which runs that unit, and otherwise is where
  // this rank is.
  int MemberWith(int unit) const;
  absl::Status Outcome(const absl::Status& queue) const;
  absl::Status Broadcast(absl::Span<int32_t> numbers, int rank,
                         const std::string& what);

  RankState& state_;
  const Plan& plan_;
  const absl::Time end_;
  const ValidatedWeights weights_;
  Communicator* world_ = nullptr;
  Communicator* transfers_ = nullptr;
  Communicator* exchanges_ = nullptr;
  int draws_first_ = 0;     // the first rank with logits
  void* number_ = nullptr;  // i32 or f32, on the device
  bool late_ = false;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_SAMPLE_PEERS_H_
