#include "proto/trust/loopback.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/match.h"

namespace troupe {

std::string HostOf(absl::string_view address) {
  const size_t end = address.find(']');
  if (!address.empty() && address[0] == '[' && end != address.npos) {
    return std::string(address.substr(1, end - 1));
  }
  // More than one colon: an IPv6 address without a port.
  if (std::count(address.begin(), address.end(), ':') != 1) {
    return std::string(address);
  }
  return std::string(address.substr(0, address.find(':')));
}

bool IsLoopback(absl::string_view address) {
  const std::string host = HostOf(address);
  in_addr v4 = {};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> 24 == 127;
  }
  in6_addr v6 = {};
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
    return IN6_IS_ADDR_LOOPBACK(&v6);
  }
  return absl::EqualsIgnoreCase(host, "localhost");
}

}  // namespace troupe
