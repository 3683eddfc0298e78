// Exchanges of rows of tokens between ranks that have the tokens and ranks that
// have their experts, round by round (proto/base/expert_rounds.h). How many
// rows go where, the table of all ranks' offsets says, which the ranks have
// gathered before.
#ifndef TROUPE_WORKER_INSTRUCTIONS_EXCHANGE_ROWS_H_
#define TROUPE_WORKER_INSTRUCTIONS_EXCHANGE_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/collective/communicator.h"

namespace troupe {

struct RowExchange {
  absl::Span<const int32_t> offsets;  // [ranks, experts + 1], on the host
  int ranks = 0;
  int64_t round = 0;
  int64_t columns = 1;  // elements of a row
  // To the experts: the rank's rows, sorted by expert, to buffers of a round.
  // Else back to where they were.
  bool to_experts = true;
  CommBuffer from;
  CommBuffer to;
};

// Of a round in which no rank has rows nothing happens, on all ranks alike.
// What of `to` is not of the round stays as it is. Internal: the table cannot
// be one of offsets, or is of other ranks; otherwise the communicator's errors.
absl::Status ExchangeRows(const RowExchange& exchange,
                          Communicator& communicator,
                          const CommOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_EXCHANGE_ROWS_H_
