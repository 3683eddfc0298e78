#include "worker/instructions/exchange_rows.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/expert_rounds.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

ElementRange Elements(const RowSpan& rows, int64_t columns) {
  return {rows.begin * columns, rows.end * columns};
}

absl::Status CheckTable(const RowExchange& exchange,
                        const Communicator& communicator) {
  const int ranks = exchange.ranks;
  if (communicator.size() != ranks) {
    return absl::InternalError(absl::StrCat("rows are exchanged between ",
                                            ranks, " ranks, but the group has ",
                                            communicator.size()));
  }
  const auto count = static_cast<int64_t>(exchange.offsets.size());
  const int64_t experts = count / ranks - 1;
  if (count % ranks == 0 && experts > 0 && experts % ranks == 0) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("a table of ", count,
                                          " offsets is not of the experts of ",
                                          ranks, " ranks"));
}

}  // namespace

absl::Status ExchangeRows(const RowExchange& exchange,
                          Communicator& communicator,
                          const CommOptions& options) {
  RETURN_IF_ERROR(CheckTable(exchange, communicator));
  const int ranks = exchange.ranks;
  const int64_t columns = exchange.columns;
  const CommBuffer& dispatched =
      exchange.to_experts ? exchange.from : exchange.to;
  const CommBuffer& received =
      exchange.to_experts ? exchange.to : exchange.from;
  const ExpertRounds rounds(
      exchange.offsets.data(), ranks,
      static_cast<int>(exchange.offsets.size()) / ranks - 1,
      received.elements / columns);
  const int64_t rows = dispatched.elements / columns;
  const int faulty = rounds.FaultyRank(rows);
  if (faulty >= 0) {
    return absl::InternalError(absl::StrCat(
        "the offsets of the rows of rank ", communicator.group().ranks[faulty],
        " do not rise from 0 to at most ", rows, ", the rows that there are"));
  }
  if (exchange.round >= rounds.RoundCount()) return absl::OkStatus();
  std::vector<ElementRange> of_tokens, of_experts;
  for (int peer = 0; peer < ranks; ++peer) {
    const int rank = communicator.rank();
    of_tokens.push_back(
        Elements(rounds.Sent(rank, exchange.round, peer), columns));
    of_experts.push_back(
        Elements(rounds.Received(rank, exchange.round, peer), columns));
  }
  return communicator.AllToAll(
      {.send = exchange.from,
       .receive = exchange.to,
       .send_ranges = exchange.to_experts ? of_tokens : of_experts,
       .receive_ranges = exchange.to_experts ? of_experts : of_tokens},
      options);
}

}  // namespace troupe
