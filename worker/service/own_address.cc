#include "worker/service/own_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/trust/loopback.h"

namespace troupe {
namespace {

// Empty for families other than IPv4 and IPv6.
std::string TextOf(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  } else if (address.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return "";
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  }
  return text;
}

// 0.0.0.0 or ::, where it can listen and nobody can reach it from elsewhere.
bool IsEveryAddress(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return v4.sin_addr.s_addr == htonl(INADDR_ANY);
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr);
}

bool CanListenAt(const addrinfo& place) {
  const int fd = socket(place.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool bound = bind(fd, place.ai_addr, place.ai_addrlen) == 0;
  close(fd);
  return bound;
}

using Places = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// `error`: of getaddrinfo.
Places LookUp(const std::string& name, int& error) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  error = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  return Places(error == 0 ? found : nullptr, freeaddrinfo);
}

// The first of them where it can listen; null: there is none.
const sockaddr* OwnAmong(const addrinfo* places) {
  for (; places != nullptr; places = places->ai_next) {
    if (!IsEveryAddress(*places->ai_addr) && CanListenAt(*places)) {
      return places->ai_addr;
    }
  }
  return nullptr;
}

std::vector<std::string> AddressesForOtherHosts() {
  std::vector<std::string> addresses;
  for (const std::string& own : OwnAddresses()) {
    if (!IsLoopback(own.substr(0, own.find(' ')))) addresses.push_back(own);
  }
  return addresses;
}

}  // namespace

std::vector<std::string> OwnAddresses() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const std::string text = TextOf(*one->ifa_addr);
    if (text.empty()) continue;
    addresses.push_back(absl::StrCat(text, " (", one->ifa_name, ")"));
  }
  freeifaddrs(all);
  return addresses;
}

absl::Status CheckOwnAddress(const std::string& address) {
  int error = 0;
  const Places places = LookUp(address, error);
  if (error == EAI_AGAIN) {
    return absl::UnavailableError(
        absl::StrCat("--address: ", address, " could not be looked up: ",
                     gai_strerror(error), "; give an address in its place"));
  }
  if (OwnAmong(places.get()) != nullptr) return absl::OkStatus();
  std::vector<std::string> tried;
  for (const addrinfo* place = places.get(); place != nullptr;
       place = place->ai_next) {
    tried.push_back(TextOf(*place->ai_addr));
  }
  const std::string what =
      error != 0 ? absl::StrCat(" is not known: ", gai_strerror(error))
      : tried == std::vector<std::string>{address}
          ? " is no address of this host"
          : absl::StrCat(" is ", absl::StrJoin(tried, ", "),
                         ", which this host does not have");
  return absl::InvalidArgumentError(absl::StrCat(
      "--address: ", address, what, ", so that no peer could reach this ",
      "worker; it has ", absl::StrJoin(OwnAddresses(), ", ")));
}

absl::Status CheckReachableFromOtherHosts(const std::string& address,
                                          const std::string& scheduler) {
  int error = 0;
  const Places places = LookUp(address, error);
  const sockaddr* const own = OwnAmong(places.get());
  if (own == nullptr || !IsLoopback(TextOf(*own))) return absl::OkStatus();
  const Places of_scheduler = LookUp(HostOf(scheduler), error);
  if (error != 0 || OwnAmong(of_scheduler.get()) != nullptr) {
    return absl::OkStatus();
  }
  const std::string text = TextOf(*own);
  const std::vector<std::string> others = AddressesForOtherHosts();
  return absl::InvalidArgumentError(absl::StrCat(
      "--address: ", address, address == text ? "" : absl::StrCat(" is ", text),
      address == text ? " is reached from this host only"
                      : ", which is reached from this host only",
      ", and the scheduler at ", scheduler,
      " is on another, so that peers there could not reach this worker; give "
      "--address one that they reach",
      others.empty() ? ", when this host has one"
                     : absl::StrCat(": ", absl::StrJoin(others, ", "))));
}

}  // namespace troupe
