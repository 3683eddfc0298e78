#include "clients/cluster_file/cluster_workers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "clients/cluster_file/node_nics.h"
#include "proto/base/status.h"
#include "proto/plan/precision.h"

namespace troupe {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr double kGiB = 1 << 30;

// Files count what causal attention computes, calibrations its masked half too.
constexpr double kMaskedToo = 2;
// Of the best product, where the file has no attention: FlashAttention-2
// reaches 50 to 73 % of an A100's peak (arXiv 2307.08691, abstract), products
// 87 %.
constexpr double kAttentionForward = 0.65;
constexpr double kAttentionBackward = 0.57;

// Elementwise passes of such devices are bound by memory, not by what they
// evaluate: at this rate a second they take no time.
constexpr double kElementwiseOps = 1e18;

bool HasProduct(const DeviceSpec& device, ElementType type) {
  return std::any_of(device.matmul().begin(), device.matmul().end(),
                     [&](const ProductSpec& product) {
                       return product.dtype() == PrecisionName(type);
                     });
}

// The type in which a device computes as fast: tensor cores multiply bf16 and
// fp16 at one rate, and processors multiply fp16 in f32.
ElementType TwinOf(const DeviceSpec& device, ElementType type) {
  if (device.kind() == "cpu") return type == F16 ? F32 : type;
  return type == BF16 ? F16 : type == F16 ? BF16 : type;
}

// The rates that the file leaves out because they are those of another type.
template <typename Rates>
void AddTwins(const DeviceSpec& device, Rates& rates) {
  const Rates given = rates;
  for (const ElementType type : {BF16, F16}) {
    const auto is_of = [](ElementType wanted) {
      return [name = PrecisionName(wanted)](const auto& rate) {
        return rate.dtype() == name;
      };
    };
    if (std::any_of(given.begin(), given.end(), is_of(type))) continue;
    const ElementType twin = TwinOf(device, type);
    for (const auto& rate : given) {
      if (is_of(twin)(rate))
        (*rates.Add() = rate).set_dtype(PrecisionName(type));
    }
  }
}

DeviceSpec WithTwins(DeviceSpec device) {
  const DeviceSpec given = device;
  AddTwins(given, *device.mutable_matmul());
  AddTwins(given, *device.mutable_attention());
  AddTwins(given, *device.mutable_datasheet());
  return device;
}

// Lengths and widths are kept by the rate, so one of them is as good as any.
void AddAttention(const DeviceSpec& device, Calibration& calibration) {
  for (const AttentionSpec& given : device.attention()) {
    AttentionRate& rate = *calibration.add_attention();
    rate.set_dtype(PrecisionOf(given.dtype()));
    rate.set_length(given.length());
    rate.set_head_dim(given.head_dim());
    rate.set_forward_flops_per_second(kMaskedToo * kTera *
                                      given.forward_tflops());
    rate.set_backward_flops_per_second(kMaskedToo * kTera *
                                       given.backward_tflops());
  }
  for (const ElementType type : {F32, BF16, F16}) {
    const std::string dtype = PrecisionName(type);
    const bool has =
        std::any_of(device.attention().begin(), device.attention().end(),
                    [&](const AttentionSpec& a) { return a.dtype() == dtype; });
    double best = 0;
    for (const ProductSpec& product : device.matmul()) {
      if (product.dtype() == dtype) best = std::max(best, product.tflops());
    }
    if (has || best == 0) continue;
    AttentionRate& rate = *calibration.add_attention();
    rate.set_dtype(type);
    rate.set_length(1024);
    rate.set_head_dim(64);
    rate.set_forward_flops_per_second(kMaskedToo * kTera * best *
                                      kAttentionForward);
    rate.set_backward_flops_per_second(kMaskedToo * kTera * best *
                                       kAttentionBackward);
  }
}

LinkRate RateOf(const LinkSpec& link) {
  LinkRate rate;
  rate.set_latency_us(link.latency_us());
  rate.set_bytes_per_second(link.bandwidth_gb_s() * kGiga);
  return rate;
}

TopologyLink Given(const LinkRate& rate) {
  TopologyLink link;
  *link.mutable_rate() = rate;
  link.set_source(GIVEN);
  return link;
}

Calibration CalibrationOf(const DeviceSpec& device, const LinksSpec& links) {
  Calibration calibration;
  calibration.set_device(device.kind());
  calibration.set_threads(1);
  for (const ProductSpec& given : device.matmul()) {
    MatmulRate& rate = *calibration.add_matmul();
    rate.set_dtype(PrecisionOf(given.dtype()));
    rate.set_m(given.m());
    rate.set_n(given.n());
    rate.set_k(given.k());
    rate.set_flops_per_second(given.tflops() * kTera);
  }
  AddAttention(device, calibration);
  const DeviceMemorySpec& memory = device.memory();
  const double bytes = memory.device().bandwidth_gb_s() * kGiga;
  calibration.set_memory_bytes_per_second(bytes);
  calibration.set_memory_bf16_bytes_per_second(bytes);
  calibration.set_optimizer_bytes_per_second(bytes);
  calibration.set_elementwise_ops_per_second(kElementwiseOps);
  calibration.set_elementwise_bf16_ops_per_second(kElementwiseOps);
  calibration.set_host_bytes_per_second(memory.host().bandwidth_gb_s() * kGiga);
  calibration.set_nvme_bytes_per_second(memory.nvme().bandwidth_gb_s() * kGiga);
  calibration.set_instruction_overhead_us(device.overhead_us());
  if (links.has_intra_node()) {
    *calibration.mutable_loopback() = RateOf(links.intra_node());
    *calibration.mutable_shared_memory() = calibration.loopback();
  }
  return calibration;
}

void AddBudget(Tier tier, const TierSpec& size, WorkerDescription& worker) {
  if (!(size.size_gib() > 0)) return;
  TierBudget& budget = *worker.add_budgets();
  budget.set_tier(tier);
  budget.set_bytes(static_cast<int64_t>(std::llround(size.size_gib() * kGiB)));
}

// What all workers of a node have in common.
WorkerDescription WorkerOf(const NodeSpec& node, const LinksSpec& links) {
  const DeviceSpec device = WithTwins(node.device());
  WorkerDescription worker;
  worker.set_threads(1);
  worker.set_dollars_per_hour(device.dollars_per_hour());
  AddBudget(DEVICE, device.memory().device(), worker);
  AddBudget(HOST, device.memory().host(), worker);
  AddBudget(NVME, device.memory().nvme(), worker);
  *worker.mutable_calibration() = CalibrationOf(device, links);
  for (const DatasheetSpec& stated : device.datasheet()) {
    DatasheetRate& rate = *worker.add_datasheet();
    rate.set_dtype(PrecisionOf(stated.dtype()));
    rate.set_flops_per_second(stated.tflops() * kTera);
  }
  if (links.has_inter_node() && node.nics().empty()) {
    *worker.mutable_network() = Given(RateOf(links.inter_node()));
  }
  return worker;
}

void AddNics(const NodeNics& nics, const LinkSpec& inter_node, int place,
             WorkerDescription& worker) {
  worker.clear_nics();
  LinkSpec all = inter_node;
  all.set_bandwidth_gb_s(0);
  for (const int adapter : nics.of_place[place]) {
    LinkSpec one = inter_node;
    one.set_bandwidth_gb_s(nics.gb_s[adapter]);
    Nic& nic = *worker.add_nics();
    nic.set_name(absl::StrCat("nic-", adapter));
    *nic.mutable_link() = Given(RateOf(one));
    all.set_bandwidth_gb_s(all.bandwidth_gb_s() + one.bandwidth_gb_s());
  }
  *worker.mutable_network() = Given(RateOf(all));
}

void Place(const std::string& host, int place, const NodeSpec& node,
           WorkerDescription& worker) {
  worker.set_name(absl::StrCat(host, "/", place));
  worker.set_host(host);
  if (node.device().kind() == "cpu") {
    worker.set_device("cpu");
    worker.set_memory_domain(host);
    return;
  }
  worker.set_device(absl::StrCat("cuda:", place));
  Gpu& gpu = *worker.mutable_gpu();
  gpu.set_uuid(worker.name());
  gpu.set_memory_bytes(worker.budgets(0).bytes());
}

// Which products tell how fast a device computes in a precision: those in it,
// or in the one of equal rate.
absl::Status CheckPrecision(const NodeSpec& node, const std::string& path,
                            const std::string& precision) {
  if (PrecisionName(PrecisionOf(precision)) != precision) {
    return absl::OkStatus();  // there is no such one, as the planner will say
  }
  const DeviceSpec& device = node.device();
  const ElementType type = PrecisionOf(precision);
  if (HasProduct(device, type) || HasProduct(device, TwinOf(device, type))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ".device.matmul: no product in ", precision,
      ", in which the job computes; add one, or set training.precision"));
}

}  // namespace

int CountWorkers(const ClusterSpec& cluster) {
  int64_t count = 0;
  for (const NodeSpec& node : cluster.nodes()) {
    count += int64_t{1} * node.count() * node.workers();
  }
  return static_cast<int>(
      std::min<int64_t>(count, std::numeric_limits<int>::max()));
}

absl::StatusOr<std::vector<WorkerDescription>> ClusterWorkers(
    const ClusterSpec& cluster, const WorkersWanted& wanted) {
  std::vector<WorkerDescription> workers;
  int host = 0;
  for (int i = 0; i < cluster.nodes_size(); ++i) {
    const NodeSpec& node = cluster.nodes(i);
    if (static_cast<int>(workers.size()) == wanted.count) break;
    RETURN_IF_ERROR(
        CheckPrecision(node, absl::StrCat("nodes[", i, "]"), wanted.precision));
    WorkerDescription worker = WorkerOf(node, cluster.links());
    const NodeNics nics = NicsOf(node);
    for (int k = 0; k < node.count(); ++k, ++host) {
      for (int place = 0; place < node.workers(); ++place) {
        if (static_cast<int>(workers.size()) == wanted.count) return workers;
        Place(absl::StrCat("node-", host), place, node, worker);
        if (!nics.gb_s.empty()) {
          AddNics(nics, cluster.links().inter_node(), place, worker);
        }
        workers.push_back(worker);
      }
    }
  }
  if (static_cast<int>(workers.size()) < wanted.count) {
    return absl::FailedPreconditionError(absl::StrCat(
        "nodes: ", workers.size(), workers.size() == 1 ? " worker" : " workers",
        " on ", host, host == 1 ? " node" : " nodes", ", and the job wants ",
        wanted.count, "; add nodes, or use smaller parallelism sizes"));
  }
  return workers;
}

}  // namespace troupe
