#include "worker/collective/gloo/mesh.h"

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/file_limit.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "worker/collective/gloo/prove_members.h"

namespace troupe {
namespace {

using ::gloo::transport::tcp::Address;

// Each connection is an open file.
absl::Status CheckFileLimit(int connections) {
  const FileLimit files = ReadFileLimit();
  if (files.left() >= connections) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "it takes ", connections, " connections, each an open file, and this ",
      "process may open ", files.left(), " more: ", files.open, " of ",
      files.max, " are open; ", kRaiseFileLimit));
}

// Gloo waits five times its timeout for a connection.
std::chrono::milliseconds ConnectTimeout(absl::Time deadline) {
  const int64_t left = absl::ToInt64Milliseconds(deadline - SteadyNow()) / 5;
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
  const absl::Time deadline = SteadyNow() + seat.timeout;
  const int size = static_cast<int>(seat.group.ranks.size());
  auto mesh = std::make_unique<GlooMesh>(seat.rank, size);
  RETURN_IF_ERROR(CheckFileLimit(size - 1));
  ASSIGN_OR_RETURN(const ListeningSockets own, mesh->Listen(seat, deadline));
  ASSIGN_OR_RETURN(const GroupIntroduction introduced,
                   Introduce(seat, own, deadline));
  const JoinAbort::Interrupt interrupt(
      seat.abort, [joining = mesh.get()](const absl::Status&) {
        joining->CloseConnections();
      });
  for (int peer = 0; peer < size; ++peer) {
    if (peer == seat.rank) continue;
    RETURN_IF_ERROR(Annotate(
        CatchGloo([&] {
          mesh->getPair(peer)->connect(
              Address(introduced.sockets[peer]).bytes());
        }),
        absl::StrCat("rank ", seat.group.ranks[peer], " cannot be reached")));
    // A connection that is closed while it is waited for counts as made.
    if (seat.abort != nullptr) RETURN_IF_ERROR(seat.abort->status());
  }
  RETURN_IF_ERROR(ProveMembers(*mesh, seat, introduced.secret, deadline));
  return mesh;
}

absl::StatusOr<ListeningSockets> GlooMesh::Listen(const CommunicatorSeat& seat,
                                                  absl::Time deadline) {
  ListeningSockets own(size);
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
      const auto& pair = transportContext_->createPair(peer);
      own[peer] = Address(pair->address().bytes()).getSockaddr();
    }
  });
  if (!bound.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot listen on ",
        seat.interface.empty() ? absl::StrCat("host ", seat.host)
                               : absl::StrCat("interface ", seat.interface),
        ": ", bound.message()));
  }
  return own;
}

void GlooMesh::CloseConnections() {
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    CatchGloo([&] { getPair(peer)->close(); }).IgnoreError();
  }
}

}  // namespace troupe
