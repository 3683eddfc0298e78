// The other ranks of a model that is cut over several, as a rank sees them that
// decodes with its part: what it does together with them, and nothing of how.
// All call the same, in the same order. Buffers lie on the rank's device.
// Errors are of those that carry it out; after one, nothing more can be done
// together.
#ifndef TROUPE_WORKER_MODEL_DECODING_PEERS_H_
#define TROUPE_WORKER_MODEL_DECODING_PEERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/tensor.h"
#include "proto/unit.pb.h"

namespace troupe {

class DecodingPeers {
 public:
  virtual ~DecodingPeers() = default;

  // What an EXCHANGE between a unit's ops does: `x`, as this rank has it, to
  // `y`, both dense; in place where they are the same memory. Of what is
  // gathered `x` may have padding behind its piece of `y`.
  virtual absl::Status Exchange(const Op::Exchange& exchange, const Tensor& x,
                                const Tensor& y) = 0;

  // What `unit`, which this rank runs, reads of the one before, which it does
  // not run; and to the rank that runs `unit`, what the one before has made.
  virtual absl::Status Receive(int unit, const Tensor& input) = 0;
  virtual absl::Status HandOn(int unit, const Tensor& output) = 0;

  // Before a unit decodes: brings its weights, and those that it is tied to, to
  // where the generator was told that they are. They may be in place of those
  // of the unit before.
  virtual absl::Status BringWeights(int unit) { return absl::OkStatus(); }

  // Of the ranks that have the logits, the first one's token, to all.
  virtual absl::StatusOr<int32_t> Share(int32_t token) = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_DECODING_PEERS_H_
