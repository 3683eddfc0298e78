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
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.c_str(), nullptr, &hints, &found);
  const Places places(found, freeaddrinfo);
  if (error == EAI_AGAIN) {
    return absl::UnavailableError(
        absl::StrCat("--address: ", address, " could not be looked up: ",
                     gai_strerror(error), "; give an address in its place"));
  }
  std::vector<std::string> tried;
  for (const addrinfo* place = found; place != nullptr;
       place = place->ai_next) {
    if (!IsEveryAddress(*place->ai_addr) && CanListenAt(*place)) {
      return absl::OkStatus();
    }
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

}  // namespace troupe
