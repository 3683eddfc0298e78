#include "worker/doctor/tunnels.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/file_text.h"

namespace troupe {
namespace {

// The first of its IPv4 addresses; Gloo's devices take others as well.
std::string AddressOf(const std::string& interface) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  std::string address;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET ||
        interface != one->ifa_name || !address.empty()) {
      continue;
    }
    char text[INET_ADDRSTRLEN];
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(*one->ifa_addr);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    address = text;
  }
  freeifaddrs(all);
  return address;
}

}  // namespace

std::vector<Tunnel> FindTunnels(const std::string& folder) {
  std::vector<Tunnel> tunnels;
  std::error_code error;
  std::filesystem::directory_iterator it(folder, error);
  for (; !error && it != std::filesystem::directory_iterator();
       it.increment(error)) {
    const std::string event = FileText(it->path() / "uevent").value_or("");
    if (!absl::StrContains(event, "DEVTYPE=wireguard\n")) continue;
    const std::string interface = it->path().filename();
    tunnels.push_back({interface, AddressOf(interface)});
  }
  std::sort(tunnels.begin(), tunnels.end(),
            [](const Tunnel& a, const Tunnel& b) {
              return a.interface < b.interface;
            });
  return tunnels;
}

Finding JudgeTunnels(const std::vector<Tunnel>& tunnels) {
  constexpr char kWhat[] = "tensors between hosts are not encrypted by Troupe";
  if (tunnels.empty()) {
    return {.state = FindingState::kNone,
            .text = absl::StrCat(kWhat, ", and there is no WireGuard here"),
            .advice =
                "on one machine nothing needs it; over a network that "
                "others use, lay them into a tunnel (docs/security.md)"};
  }
  std::vector<std::string> names;
  std::string address;
  for (const Tunnel& tunnel : tunnels) {
    names.push_back(tunnel.address.empty()
                        ? tunnel.interface
                        : absl::StrCat(tunnel.interface, " (", tunnel.address,
                                       ")"));
    if (address.empty()) address = tunnel.address;
  }
  return {.text = absl::StrCat(kWhat, "; WireGuard does it on ",
                               absl::StrJoin(names, ", ")),
          .advice = absl::StrCat("have them go there: troupe-worker --address ",
                                 address.empty() ? "IP" : address)};
}

Finding CheckTunnels() { return JudgeTunnels(FindTunnels("/sys/class/net")); }

}  // namespace troupe
