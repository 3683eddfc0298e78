#include "worker/collective/gloo/introduce.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "proto/trust/secret.h"

namespace troupe {
namespace {

constexpr size_t kPortBytes = 2;
// What the first rank's answers begin with.
constexpr char kWell[] = "+";
constexpr char kFailed[] = "-";

// Where the port lies in a socket's address, of IPv4 and IPv6 alike.
constexpr size_t kPortAt = offsetof(sockaddr_in, sin_port);
static_assert(kPortAt == offsetof(sockaddr_in6, sin6_port));

// A rank's addresses: what they have in common, and the port of each.
struct Listening {
  std::string host;   // the beginning of a sockaddr_storage, with no port
  std::string ports;  // by peer, in network order; zeros at its own place
};

// What comes behind an address in its sockaddr_storage says nothing.
size_t AddressBytes(const sockaddr_storage& socket) {
  return socket.ss_family == AF_INET6
             ? sizeof(sockaddr_in6)
             : offsetof(sockaddr_in, sin_addr) + sizeof(in_addr);
}

absl::StatusOr<Listening> Split(const ListeningSockets& own) {
  Listening listening;
  for (const sockaddr_storage& socket : own) {
    if (socket.ss_family == AF_UNSPEC) {
      listening.ports.append(kPortBytes, '\0');
      continue;
    }
    std::string host(reinterpret_cast<const char*>(&socket),
                     AddressBytes(socket));
    listening.ports.append(host, kPortAt, kPortBytes);
    std::fill_n(host.begin() + kPortAt, kPortBytes, '\0');
    if (listening.host.empty()) listening.host = host;
    if (host != listening.host) {
      return absl::InternalError("Gloo listens on several hosts at once");
    }
  }
  return listening;
}

absl::StatusOr<sockaddr_storage> Join(const std::string& host,
                                      absl::string_view port) {
  sockaddr_storage socket = {};
  if (host.size() > sizeof(socket) || port.size() != kPortBytes) {
    return absl::InternalError("the group's first rank is of another version");
  }
  std::memcpy(&socket, host.data(), host.size());
  std::memcpy(reinterpret_cast<char*>(&socket) + kPortAt, port.data(),
              kPortBytes);
  return socket;
}

// Texts of any bytes as one, each after its length.
std::string Packed(const std::vector<std::string>& texts) {
  std::string packed;
  for (const std::string& text : texts) {
    absl::StrAppend(&packed, text.size(), " ", text);
  }
  return packed;
}

absl::StatusOr<std::vector<std::string>> Unpacked(absl::string_view packed) {
  std::vector<std::string> texts;
  while (!packed.empty()) {
    const size_t space = packed.find(' ');
    size_t size = 0;
    if (space == absl::string_view::npos ||
        !absl::SimpleAtoi(packed.substr(0, space), &size) ||
        size > packed.size() - space - 1) {
      return absl::InternalError("a peer is of another version");
    }
    texts.emplace_back(packed.substr(space + 1, size));
    packed.remove_prefix(space + 1 + size);
  }
  return texts;
}

class Introduction {
 public:
  Introduction(const CommunicatorSeat& seat, absl::Time deadline)
      : seat_(seat),
        size_(static_cast<int>(seat.group.ranks.size())),
        deadline_(deadline) {}

  absl::Status Publish(const Listening& own) {
    return seat_.store->Set(Key(absl::StrCat(seat_.rank)),
                            Packed({own.host, own.ports}));
  }

  // The first rank's part. A member that does not come is named to the others
  // while they still wait.
  absl::Status HandOut() {
    const absl::Duration left = deadline_ - SteadyNow();
    const absl::StatusOr<std::vector<Listening>> all =
        Gather(deadline_ - std::min(left / 10, absl::Seconds(5)));
    if (!all.ok()) {
      const std::string why =
          absl::StrCat(kFailed, Packed({absl::StrCat(all.status().raw_code()),
                                        std::string(all.status().message())}));
      // An error of the store is the same to all, without these words.
      seat_.store->Set(Key("hosts"), why).IgnoreError();
      return all.status();
    }
    std::vector<std::string> said = {NewSecret()};
    for (const Listening& one : *all) said.push_back(one.host);
    RETURN_IF_ERROR(
        seat_.store->Set(Key("hosts"), absl::StrCat(kWell, Packed(said))));
    for (int rank = 0; rank < size_; ++rank) {
      std::string ports;
      for (const Listening& one : *all) {
        ports.append(one.ports, rank * kPortBytes, kPortBytes);
      }
      RETURN_IF_ERROR(seat_.store->Set(PortsKey(rank), ports));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<GroupIntroduction> Collect() {
    ASSIGN_OR_RETURN(const std::vector<std::string> said, CollectHosts());
    ASSIGN_OR_RETURN(const std::string ports,
                     Get(PortsKey(seat_.rank), 0, deadline_));
    if (static_cast<int>(said.size()) != size_ + 1 ||
        said[0].size() != kSecretDigits || ports.size() != size_ * kPortBytes) {
      return absl::InternalError(
          "the group's first rank is of another version");
    }
    GroupIntroduction introduced = {.sockets = ListeningSockets(size_),
                                    .secret = said[0]};
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == seat_.rank) continue;
      const absl::string_view port =
          absl::string_view(ports).substr(peer * kPortBytes, kPortBytes);
      ASSIGN_OR_RETURN(introduced.sockets[peer], Join(said[peer + 1], port));
    }
    return introduced;
  }

 private:
  std::string Key(absl::string_view name) const {
    return absl::StrCat(seat_.group.name, "/gloo/", name);
  }
  std::string PortsKey(int rank) const {
    return Key(absl::StrCat("ports/", rank));
  }

  // What `from` sets.
  absl::StatusOr<std::string> Get(const std::string& key, int from,
                                  absl::Time deadline) {
    absl::StatusOr<std::string> value =
        seat_.store->Get(key, deadline - SteadyNow());
    if (value.ok()) return value;
    return Annotate(
        value.status(),
        absl::StrCat("rank ", seat_.group.ranks[from], " did not come"));
  }

  absl::StatusOr<std::vector<Listening>> Gather(absl::Time deadline) {
    std::vector<Listening> all;
    for (int rank = 0; rank < size_; ++rank) {
      ASSIGN_OR_RETURN(const std::string value,
                       Get(Key(absl::StrCat(rank)), rank, deadline));
      ASSIGN_OR_RETURN(std::vector<std::string> parts, Unpacked(value));
      if (parts.size() != 2 || parts[1].size() != size_ * kPortBytes) {
        return absl::InternalError(absl::StrCat(
            "rank ", seat_.group.ranks[rank], " is of another version"));
      }
      all.push_back({std::move(parts[0]), std::move(parts[1])});
    }
    return all;
  }

  absl::StatusOr<std::vector<std::string>> CollectHosts() {
    ASSIGN_OR_RETURN(const std::string value, Get(Key("hosts"), 0, deadline_));
    ASSIGN_OR_RETURN(std::vector<std::string> parts,
                     Unpacked(absl::string_view(value).substr(
                         std::min<size_t>(1, value.size()))));
    if (value.substr(0, 1) == kWell) return parts;
    int code = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &code)) {
      return absl::InternalError(
          "the group's first rank is of another version");
    }
    return absl::Status(static_cast<absl::StatusCode>(code), parts[1]);
  }

  const CommunicatorSeat& seat_;
  const int size_;
  const absl::Time deadline_;
};

}  // namespace

absl::StatusOr<GroupIntroduction> Introduce(const CommunicatorSeat& seat,
                                            const ListeningSockets& own,
                                            absl::Time deadline) {
  CHECK_EQ(own.size(), seat.group.ranks.size());
  ASSIGN_OR_RETURN(const Listening listening, Split(own));
  Introduction introduction(seat, deadline);
  RETURN_IF_ERROR(introduction.Publish(listening));
  if (seat.rank == 0) RETURN_IF_ERROR(introduction.HandOut());
  return introduction.Collect();
}

}  // namespace troupe
