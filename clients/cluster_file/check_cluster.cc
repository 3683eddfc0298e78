#include "clients/cluster_file/check_cluster.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cluster_file/node_nics.h"
#include "proto/base/status.h"
#include "proto/plan/precision.h"

namespace troupe {
namespace {

// Far past what is built, near enough to catch a unit that was mistaken.
constexpr int64_t kNodesMax = 100000;
constexpr int64_t kWorkersMax = 1024;
constexpr int64_t kSideMax = int64_t{1} << 24;
constexpr double kTflopsMax = 1e5;
constexpr double kGibMax = 1e7;
constexpr double kGbPerSecondMax = 1e6;
constexpr double kMicrosecondsMax = 1e7;
constexpr double kDollarsMax = 1e6;  // an hour

constexpr double kOverheadUs = 5;  // of a kernel's launch

struct Whole {
  int64_t value = 0;
  int64_t max = 0;
};
struct Real {
  double value = 0;
  double max = 0;
  bool zero = false;  // is allowed
};

class Checker {
 public:
  explicit Checker(const PositionMap& positions) : positions_(positions) {}

  absl::Status Cluster(ClusterSpec& cluster) const {
    for (auto& [name, device] : *cluster.mutable_devices()) {
      RETURN_IF_ERROR(Device(absl::StrCat("devices.", name), device));
    }
    if (cluster.nodes().empty()) {
      return Error("nodes",
                   "missing; as in nodes: [{count: 2, workers: 8, "
                   "device: {...}}]");
    }
    int64_t nodes = 0;
    int most = 0;
    for (int i = 0; i < cluster.nodes_size(); ++i) {
      const std::string path = absl::StrCat("nodes[", i, "]");
      RETURN_IF_ERROR(Node(path, *cluster.mutable_nodes(i)));
      nodes += cluster.nodes(i).count();
      most = std::max(most, cluster.nodes(i).workers());
    }
    if (most > 1 || Given("links.intra_node")) {
      RETURN_IF_ERROR(Link("links.intra_node", cluster.links().intra_node()));
    }
    if (nodes > 1 || Given("links.inter_node")) {
      RETURN_IF_ERROR(InterNode(cluster));
    }
    for (int i = 0; i < cluster.nodes_size(); ++i) {
      const std::string path = absl::StrCat("nodes[", i, "].nics");
      if (nodes > 1 || cluster.nodes(i).nics().empty()) continue;
      return Error(path,
                   "adapters to other nodes, and there is one node; leave "
                   "them out, or add nodes");
    }
    return absl::OkStatus();
  }

 private:
  bool Given(const std::string& path) const {
    return positions_.count(path) > 0;
  }

  // At the field, or at the nearest section around it that was written.
  absl::Status Error(const std::string& path, absl::string_view what) const {
    std::string nearest = path;
    while (!nearest.empty() && !Given(nearest)) {
      const size_t cut = nearest.find_last_of(".[");
      nearest = cut == std::string::npos ? "" : nearest.substr(0, cut);
    }
    return absl::InvalidArgumentError(
        absl::StrCat(positions_.at(nearest), ": ", path, ": ", what));
  }

  absl::Status Check(const std::string& path, const Whole& n) const {
    const std::string range = absl::StrCat("use 1 to ", n.max);
    if (!Given(path)) return Error(path, absl::StrCat("missing; ", range));
    if (n.value >= 1 && n.value <= n.max) return absl::OkStatus();
    return Error(path, absl::StrCat(n.value, "; ", range));
  }

  absl::Status Check(const std::string& path, const Real& n) const {
    const std::string range =
        n.zero ? absl::StrFormat("use 0 to %.9g", n.max)
               : absl::StrFormat("use more than 0, up to %.9g", n.max);
    if (!Given(path)) return Error(path, absl::StrCat("missing; ", range));
    const bool low = n.zero ? n.value < 0 : !(n.value > 0);
    if (!low && n.value <= n.max) return absl::OkStatus();
    return Error(path, absl::StrFormat("%.9g; %s", n.value, range));
  }

  absl::Status Node(const std::string& path, NodeSpec& node) const {
    if (!Given(path + ".count")) {
      node.set_count(1);
    } else {
      RETURN_IF_ERROR(Check(path + ".count",
                            Whole{.value = node.count(), .max = kNodesMax}));
    }
    RETURN_IF_ERROR(Check(path + ".workers",
                          Whole{.value = node.workers(), .max = kWorkersMax}));
    RETURN_IF_ERROR(Nics(path, node));
    if (!node.has_device()) return absl::OkStatus();
    return Device(path + ".device", *node.mutable_device());
  }

  absl::Status Nics(const std::string& path, NodeSpec& node) const {
    for (int i = 0; i < node.nics_size(); ++i) {
      const std::string at = absl::StrCat(path, ".nics[", i, "]");
      NicSpec& nic = *node.mutable_nics(i);
      if (!Given(at + ".count")) {
        nic.set_count(1);
      } else {
        RETURN_IF_ERROR(Check(at + ".count",
                              Whole{.value = nic.count(), .max = kWorkersMax}));
      }
      RETURN_IF_ERROR(
          Check(at + ".bandwidth_gb_s",
                Real{.value = nic.bandwidth_gb_s(), .max = kGbPerSecondMax}));
      std::set<int> places;
      for (int k = 0; k < nic.devices_size(); ++k) {
        const int place = nic.devices(k);
        const std::string of = absl::StrCat(at, ".devices[", k, "]");
        if (place < 0 || place >= node.workers()) {
          return Error(of,
                       absl::StrCat(place, "; use a place of the node, 0 to ",
                                    node.workers() - 1));
        }
        if (!places.insert(place).second) {
          return Error(of, absl::StrCat(place, "; it is there twice"));
        }
      }
    }
    if (node.nics().empty()) return absl::OkStatus();
    const NodeNics nics = NicsOf(node);
    for (int place = 0; place < node.workers(); ++place) {
      if (!nics.of_place[place].empty()) continue;
      return Error(path + ".nics",
                   absl::StrCat("none serves place ", place,
                                "; add it to the devices of one"));
    }
    return absl::OkStatus();
  }

  // Adapters have their own bandwidth.
  absl::Status InterNode(const ClusterSpec& cluster) const {
    const LinkSpec& link = cluster.links().inter_node();
    const bool all_have_nics =
        std::all_of(cluster.nodes().begin(), cluster.nodes().end(),
                    [](const NodeSpec& node) { return !node.nics().empty(); });
    if (!all_have_nics) return Link("links.inter_node", link);
    const std::string bandwidth = "links.inter_node.bandwidth_gb_s";
    if (Given(bandwidth)) {
      return Error(bandwidth,
                   "all nodes have nics, whose bandwidth_gb_s says it; leave "
                   "it out");
    }
    return Latency("links.inter_node", link);
  }

  absl::Status Device(const std::string& path, DeviceSpec& device) const {
    if (device.kind().empty()) device.set_kind("gpu");
    if (device.kind() != "gpu" && device.kind() != "cpu") {
      return Error(path + ".kind",
                   absl::StrCat(device.kind(), "; use gpu or cpu"));
    }
    if (device.matmul().empty()) {
      return Error(path + ".matmul",
                   "missing; as in matmul: [{dtype: bf16, m: 8192, n: 8192, "
                   "k: 8192, tflops: 250}]");
    }
    for (int i = 0; i < device.matmul_size(); ++i) {
      RETURN_IF_ERROR(
          Product(absl::StrCat(path, ".matmul[", i, "]"), device.matmul(i)));
    }
    for (int i = 0; i < device.attention_size(); ++i) {
      RETURN_IF_ERROR(Attention(absl::StrCat(path, ".attention[", i, "]"),
                                device.attention(i)));
    }
    RETURN_IF_ERROR(Datasheet(path, device));
    RETURN_IF_ERROR(Memory(path + ".memory", device.memory()));
    if (Given(path + ".dollars_per_hour")) {
      RETURN_IF_ERROR(Check(path + ".dollars_per_hour",
                            Real{.value = device.dollars_per_hour(),
                                 .max = kDollarsMax,
                                 .zero = true}));
    }
    if (!Given(path + ".overhead_us")) {
      device.set_overhead_us(kOverheadUs);
      return absl::OkStatus();
    }
    return Check(path + ".overhead_us", Real{.value = device.overhead_us(),
                                             .max = kMicrosecondsMax,
                                             .zero = true});
  }

  // What is measured is no more than what the maker states.
  absl::Status Datasheet(const std::string& path,
                         const DeviceSpec& device) const {
    std::set<std::string> dtypes;
    for (int i = 0; i < device.datasheet_size(); ++i) {
      const DatasheetSpec& stated = device.datasheet(i);
      const std::string at = absl::StrCat(path, ".datasheet[", i, "]");
      RETURN_IF_ERROR(Dtype(at + ".dtype", stated.dtype()));
      if (!dtypes.insert(stated.dtype()).second) {
        return Error(at + ".dtype",
                     absl::StrCat(stated.dtype(), "; it is there twice"));
      }
      RETURN_IF_ERROR(Check(at + ".tflops",
                            Real{.value = stated.tflops(), .max = kTflopsMax}));
      for (int k = 0; k < device.matmul_size(); ++k) {
        const ProductSpec& product = device.matmul(k);
        if (product.dtype() != stated.dtype() ||
            product.tflops() <= stated.tflops()) {
          continue;
        }
        return Error(
            absl::StrCat(path, ".matmul[", k, "].tflops"),
            absl::StrFormat("%.9g; the datasheet states %.9g in %s, "
                            "which no product exceeds; correct one",
                            product.tflops(), stated.tflops(), stated.dtype()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Dtype(const std::string& path, const std::string& dtype) const {
    for (const ElementType type : {F32, BF16, F16}) {
      if (dtype == PrecisionName(type)) return absl::OkStatus();
    }
    return Error(path, absl::StrCat(dtype.empty() ? "missing" : dtype,
                                    "; use f32, bf16 or fp16"));
  }

  absl::Status Product(const std::string& path, const ProductSpec& p) const {
    RETURN_IF_ERROR(Dtype(path + ".dtype", p.dtype()));
    RETURN_IF_ERROR(Check(path + ".m", Whole{.value = p.m(), .max = kSideMax}));
    RETURN_IF_ERROR(Check(path + ".n", Whole{.value = p.n(), .max = kSideMax}));
    RETURN_IF_ERROR(Check(path + ".k", Whole{.value = p.k(), .max = kSideMax}));
    return Check(path + ".tflops",
                 Real{.value = p.tflops(), .max = kTflopsMax});
  }

  absl::Status Attention(const std::string& path,
                         const AttentionSpec& a) const {
    RETURN_IF_ERROR(Dtype(path + ".dtype", a.dtype()));
    RETURN_IF_ERROR(
        Check(path + ".length", Whole{.value = a.length(), .max = kSideMax}));
    RETURN_IF_ERROR(Check(path + ".head_dim",
                          Whole{.value = a.head_dim(), .max = kSideMax}));
    RETURN_IF_ERROR(
        Check(path + ".forward_tflops",
              Real{.value = a.forward_tflops(), .max = kTflopsMax}));
    return Check(path + ".backward_tflops",
                 Real{.value = a.backward_tflops(), .max = kTflopsMax});
  }

  absl::Status Memory(const std::string& path,
                      const DeviceMemorySpec& m) const {
    RETURN_IF_ERROR(Tier(path + ".device", m.device()));
    if (m.has_host()) RETURN_IF_ERROR(Tier(path + ".host", m.host()));
    if (m.has_nvme()) RETURN_IF_ERROR(Tier(path + ".nvme", m.nvme()));
    return absl::OkStatus();
  }

  absl::Status Tier(const std::string& path, const TierSpec& tier) const {
    RETURN_IF_ERROR(Check(path + ".size_gib",
                          Real{.value = tier.size_gib(), .max = kGibMax}));
    return Check(path + ".bandwidth_gb_s",
                 Real{.value = tier.bandwidth_gb_s(), .max = kGbPerSecondMax});
  }

  absl::Status Link(const std::string& path, const LinkSpec& link) const {
    RETURN_IF_ERROR(Latency(path, link));
    return Check(path + ".bandwidth_gb_s",
                 Real{.value = link.bandwidth_gb_s(), .max = kGbPerSecondMax});
  }

  absl::Status Latency(const std::string& path, const LinkSpec& link) const {
    return Check(path + ".latency_us", Real{.value = link.latency_us(),
                                            .max = kMicrosecondsMax,
                                            .zero = true});
  }

  const PositionMap& positions_;
};

}  // namespace

absl::Status CheckCluster(const PositionMap& positions, ClusterSpec& cluster) {
  return Checker(positions).Cluster(cluster);
}

}  // namespace troupe
