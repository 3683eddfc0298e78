#include "worker/collective/communicator.h"

#include <cstring>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr char kMissingRankPayload[] = "troupe/missing-rank";

}  // namespace

Communicator::Communicator(CommGroup group, int rank)
    : group_(std::move(group)), rank_(rank) {
  CHECK(rank >= 0 && rank < size())
      << "rank " << rank << " of group " << group_.name;
}

absl::Status Communicator::Run(
    const char* operation, const CommOptions& options,
    const std::function<absl::Status(const Call&)>& body) {
  {
    absl::MutexLock lock(&mutex_);
    if (!broken_.ok()) return broken_;
  }
  const absl::Time start = absl::Now();
  absl::Status status =
      body({operation, start, start + options.timeout, options.name});
  if (status.ok()) return status;
  std::string context = absl::StrCat("group ", group_.name, ": ", operation);
  if (!options.name.empty()) absl::StrAppend(&context, " of ", options.name);
  // Where this communicator is made of another one, that has said it already.
  if (!absl::StartsWith(status.message(), context)) {
    status = Annotate(status, context);
  }
  absl::MutexLock lock(&mutex_);
  if (broken_.ok()) broken_ = status;
  return status;
}

void Communicator::Abort(const absl::Status& why) {
  CHECK(!why.ok()) << "an abort needs a reason";
  {
    absl::MutexLock lock(&mutex_);
    if (!broken_.ok()) return;
    broken_ = absl::CancelledError(
        absl::StrCat("group ", group_.name, " was aborted: ", why.message()));
  }
  DoAbort(why);
}

absl::Status Communicator::PeerError(const Verdict& failure,
                                     const Call& call) const {
  // Enough digits for people: 1.534s, 12ms.
  const absl::Duration waited =
      absl::Trunc(absl::Now() - call.start, absl::Milliseconds(1));
  absl::Status status(
      failure.code,
      absl::StrCat("rank ", group_.ranks[failure.peer], " ", failure.what,
                   " (rank ", group_.ranks[rank_], " waited ",
                   absl::FormatDuration(waited), ")"));
  status.SetPayload(kMissingRankPayload,
                    absl::Cord(absl::StrCat(group_.ranks[failure.peer])));
  return status;
}

absl::optional<int> MissingRank(const absl::Status& status) {
  const absl::optional<absl::Cord> payload =
      status.GetPayload(kMissingRankPayload);
  int rank = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &rank)) {
    return absl::nullopt;
  }
  return rank;
}

absl::Status Communicator::AllReduce(CommBuffer data, ReduceOp op,
                                     const CommOptions& options) {
  CHECK(data.element != Element::kByte) << "bytes cannot be reduced";
  return Run("all-reduce", options, [&](const Call& call) {
    if (size() == 1 || data.elements == 0) return absl::OkStatus();
    return DoAllReduce(data, op, call);
  });
}

absl::Status Communicator::ReduceScatter(CommBuffer data, ReduceOp op,
                                         const CommOptions& options) {
  CHECK(data.element != Element::kByte) << "bytes cannot be reduced";
  return Run("reduce-scatter", options, [&](const Call& call) {
    if (size() == 1 || data.elements == 0) return absl::OkStatus();
    return DoReduceScatter(data, op, call);
  });
}

absl::Status Communicator::AllGather(CommBuffer data,
                                     const CommOptions& options) {
  return Run("all-gather", options, [&](const Call& call) {
    if (size() == 1 || data.elements == 0) return absl::OkStatus();
    return DoAllGather(data, call);
  });
}

absl::Status Communicator::Broadcast(CommBuffer data, int root,
                                     const CommOptions& options) {
  CHECK(root >= 0 && root < size()) << "root " << root << " of " << size();
  return Run("broadcast", options, [&](const Call& call) {
    if (size() == 1 || data.elements == 0) return absl::OkStatus();
    return DoBroadcast(data, root, call);
  });
}

absl::Status Communicator::AllToAll(const AllToAllBuffers& buffers,
                                    const CommOptions& options) {
  const CommBuffer& send = buffers.send;
  CHECK(send.elements == buffers.receive.elements &&
        send.element == buffers.receive.element);
  CHECK_EQ(send.elements % size(), 0);
  return Run("all-to-all", options, [&](const Call& call) {
    if (send.elements == 0) return absl::OkStatus();
    if (size() == 1) return CopyToSelf(buffers);
    return DoAllToAll(buffers, call);
  });
}

absl::Status Communicator::CopyToSelf(const AllToAllBuffers& buffers) {
  std::memcpy(buffers.receive.data, buffers.send.data, buffers.send.bytes());
  return absl::OkStatus();
}

absl::Status Communicator::Send(CommBuffer data, int peer,
                                const CommOptions& options) {
  CHECK(peer >= 0 && peer < size() && peer != rank_)
      << "rank " << rank_ << " sends to " << peer << " of " << size();
  return Run("send", options, [&](const Call& call) {
    if (data.elements == 0) return absl::OkStatus();
    return DoSend(data, peer, call);
  });
}

absl::Status Communicator::Recv(CommBuffer data, int peer,
                                const CommOptions& options) {
  CHECK(peer >= 0 && peer < size() && peer != rank_)
      << "rank " << rank_ << " receives from " << peer << " of " << size();
  return Run("recv", options, [&](const Call& call) {
    if (data.elements == 0) return absl::OkStatus();
    return DoRecv(data, peer, call);
  });
}

absl::Status Communicator::Barrier(const CommOptions& options) {
  return Run("barrier", options, [&](const Call& call) {
    if (size() == 1) return absl::OkStatus();
    return DoBarrier(call);
  });
}

}  // namespace troupe
