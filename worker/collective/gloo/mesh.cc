#include "worker/collective/gloo/mesh.h"

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

std::string Key(const CommunicatorSeat& seat, int rank) {
  return absl::StrCat(seat.group.name, "/gloo/", rank);
}

// Gloo waits five times its timeout for a connection.
std::chrono::milliseconds ConnectTimeout(absl::Time deadline) {
  const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now()) / 5;
  return std::chrono::milliseconds(std::max<int64_t>(left, 1));
}

// A write to a peer that is gone shall be an error, not the end of the process.
void IgnoreBrokenPipes() {
  struct sigaction action;
  if (sigaction(SIGPIPE, nullptr, &action) == 0 &&
      action.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<GlooMesh>> GlooMesh::Connect(
    const CommunicatorSeat& seat) {
  IgnoreBrokenPipes();
  const absl::Time deadline = absl::Now() + seat.timeout;
  const int size = static_cast<int>(seat.group.ranks.size());
  auto mesh = std::make_unique<GlooMesh>(seat.rank, size);
  RETURN_IF_ERROR(mesh->Listen(seat, deadline));
  for (int peer = 0; peer < size; ++peer) {
    if (peer == seat.rank) continue;
    RETURN_IF_ERROR(mesh->ConnectPeer(seat, peer, deadline));
  }
  return mesh;
}

absl::Status GlooMesh::Listen(const CommunicatorSeat& seat,
                              absl::Time deadline) {
  std::string addresses;  // of equal length, for each peer in order
  const absl::Status bound = CatchGloo([&] {
    ::gloo::transport::tcp::attr attr;
    if (seat.interface.empty()) {
      attr.hostname = seat.host;
    } else {
      attr.iface = seat.interface;
    }
    device_ = ::gloo::transport::tcp::CreateDevice(attr);
    transportContext_ = device_->createContext(rank, size);
    transportContext_->setTimeout(ConnectTimeout(deadline));
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      const std::vector<char> address =
          transportContext_->createPair(peer)->address().bytes();
      addresses.append(address.begin(), address.end());
    }
  });
  if (!bound.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot listen on ",
        seat.interface.empty() ? absl::StrCat("host ", seat.host)
                               : absl::StrCat("interface ", seat.interface),
        ": ", bound.message()));
  }
  return seat.store->Set(Key(seat, rank), addresses);
}

absl::Status GlooMesh::ConnectPeer(const CommunicatorSeat& seat, int peer,
                                   absl::Time deadline) {
  const std::string who = absl::StrCat("rank ", seat.group.ranks[peer]);
  const absl::StatusOr<std::string> addresses =
      seat.store->Get(Key(seat, peer), deadline - absl::Now());
  if (!addresses.ok()) {
    return Annotate(addresses.status(), absl::StrCat(who, " did not come"));
  }
  const size_t bytes = addresses->size() / (size - 1);
  const int place = rank < peer ? rank : rank - 1;  // it has none for itself
  const std::vector<char> address(addresses->begin() + place * bytes,
                                  addresses->begin() + (place + 1) * bytes);
  return Annotate(CatchGloo([&] { getPair(peer)->connect(address); }),
                  absl::StrCat(who, " cannot be reached"));
}

}  // namespace troupe
