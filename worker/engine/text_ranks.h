// The peers of a worker that writes a text with others, over the communicators
// of its plan's groups: one for the exchanges within units along each axis, and
// one of all ranks, which hands on activations and shares tokens.
//
//   ASSIGN_OR_RETURN(auto ranks, TextRanks::Join({.plan = plan, ...}));
//   ... load the weights ...
//   RETURN_IF_ERROR(ranks->Meet());
//   Generator::Create(device, model, {..., .peers = ranks.get()}, weights);
#ifndef TROUPE_WORKER_ENGINE_TEXT_RANKS_H_
#define TROUPE_WORKER_ENGINE_TEXT_RANKS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ops/device.h"
#include "proto/text_plan.pb.h"
#include "worker/collective/communicator.h"
#include "worker/collective/join_abort.h"
#include "worker/collective/key_value_store.h"
#include "worker/model/decoding_peers.h"

namespace troupe {

struct TextRanksOptions {
  const TextPlan& plan;
  int rank = 0;
  Device& device;
  KeyValueStore& store;
  JoinAbort& abort;  // ends the wait for the others to join
  std::string host;  // where they reach this one
  absl::Duration join_timeout = absl::Minutes(1);
  // Of all to have their weights. The scheduler, which hears how each gets on,
  // ends this wait where one does not.
  absl::Duration meet_timeout = absl::Hours(24);
  absl::Duration timeout;  // of everything after that
};

// Abort from any thread.
class TextRanks final : public DecodingPeers {
 public:
  // Waits for the others to join. Borrows what the options refer to. Errors as
  // CreateCommunicator.
  static absl::StatusOr<std::unique_ptr<TextRanks>> Join(
      const TextRanksOptions& options);
  ~TextRanks() override;

  // Returns once all have called it.
  absl::Status Meet();

  absl::Status Exchange(const Op::Exchange& exchange, const Tensor& x,
                        const Tensor& y) override;
  absl::Status Receive(int unit, const Tensor& input) override;
  absl::Status HandOn(int unit, const Tensor& output) override;
  absl::StatusOr<int32_t> Share(int32_t token) override;

  // What is under way, and all later calls, fail; here and at the peers.
  void Abort(const absl::Status& why);

 private:
  explicit TextRanks(const TextRanksOptions& options);

  absl::Status Connect();
  // Of all that was moved, `queue` being what the wait for it has returned.
  absl::Status Outcome(const absl::Status& queue);
  // The rank that is `places` places further on the pipeline.
  int Neighbour(int places) const;

  const TextRanksOptions options_;
  std::unique_ptr<Communicator> all_;
  std::map<std::string, std::unique_ptr<Communicator>> along_;  // by axis
  int first_with_logits_ = 0;
  void* token_ = nullptr;  // i32, on the device
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_TEXT_RANKS_H_
