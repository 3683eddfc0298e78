// The other ranks of a model that is cut over several, as a rank sees them that
// decodes with its part: what it does together with them, and nothing of how.
// All call the same, in the same order. Buffers lie on the rank's device.
// Errors are of those who carry it out; after one, nothing more can be done
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

  // What the unit before this rank's first has made; what its last has made, to
  // the rank of the unit behind it.
  virtual absl::Status Receive(const Tensor& input) = 0;
  virtual absl::Status HandOn(const Tensor& output) = 0;

  // Of the ranks that have the logits, the first one's token, to all.
  virtual absl::StatusOr<int32_t> Share(int32_t token) = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_DECODING_PEERS_H_
