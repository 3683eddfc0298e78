#include "clients/cluster_file/cluster_file.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cluster_file/check_cluster.h"
#include "clients/job_file/fill_message.h"
#include "clients/job_file/suggest.h"
#include "clients/job_file/yaml_tree.h"
#include "proto/base/choices.h"
#include "proto/base/file_text.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// Names of devices by the index of the node that has one.
using DeviceNames = std::map<int, YamlNode>;

YamlNode* Find(YamlNode& map, absl::string_view key) {
  for (size_t i = 0; i < map.keys.size(); ++i) {
    if (map.keys[i].text == key) return &map.items[i];
  }
  return nullptr;
}

// Takes the names out of the tree, so that what is left has the message's form.
DeviceNames TakeNames(YamlNode& root) {
  DeviceNames names;
  YamlNode* const nodes = Find(root, "nodes");
  if (nodes == nullptr) return names;
  for (size_t i = 0; i < nodes->items.size(); ++i) {
    YamlNode& node = nodes->items[i];
    YamlNode* const device = Find(node, "device");
    if (device == nullptr || device->kind != YamlNode::Kind::kScalar) continue;
    names[static_cast<int>(i)] = *device;
    const auto at = device - node.items.data();
    node.keys.erase(node.keys.begin() + at);
    node.items.erase(node.items.begin() + at);
  }
  return names;
}

absl::StatusOr<DeviceSpec> DeviceOf(const std::string& name,
                                    const ClusterSpec& cluster) {
  const auto found = cluster.devices().find(name);
  if (found != cluster.devices().end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [other, device] : cluster.devices()) known.push_back(other);
  std::sort(known.begin(), known.end());
  const std::string meant = Suggest(name, known);
  const std::string way_out =
      !meant.empty()  ? absl::StrCat("did you mean ", meant, "?")
      : known.empty() ? absl::StrCat("describe it, as in devices: {", name,
                                     ": {matmul: [...], memory: {...}}}")
                      : absl::StrCat("use ", OrList(known));
  return absl::InvalidArgumentError(
      absl::StrCat("no device is called ", name, "; ", way_out));
}

absl::Status PutDevices(const DeviceNames& names, const YamlSource& source,
                        const PositionMap& positions, ClusterSpec& cluster) {
  for (int i = 0; i < cluster.nodes_size(); ++i) {
    NodeSpec& node = *cluster.mutable_nodes(i);
    const std::string path = absl::StrCat("nodes[", i, "]");
    const auto name = names.find(i);
    if (name != names.end()) {
      absl::StatusOr<DeviceSpec> device = DeviceOf(name->second.text, cluster);
      if (!device.ok()) {
        return source.Error(
            name->second,
            absl::StrCat(path, ".device: ", device.status().message()));
      }
      *node.mutable_device() = *std::move(device);
    } else if (!node.has_device()) {
      return absl::InvalidArgumentError(absl::StrCat(
          positions.at(path), ": ", path,
          ".device: missing; describe it here, or name one of the devices"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ClusterSpec> ParseClusterSpec(const ClusterText& text) {
  const YamlSource source{text.name};
  ASSIGN_OR_RETURN(YamlNode root, ParseYaml(text.text, source));
  if (root.kind == YamlNode::Kind::kNull) {
    return source.Error(root, "the cluster file is empty");
  }
  const DeviceNames names = TakeNames(root);
  ClusterSpec cluster;
  PositionMap positions;
  RETURN_IF_ERROR(FillMessage(root, source, cluster, positions));
  RETURN_IF_ERROR(CheckCluster(positions, cluster));
  RETURN_IF_ERROR(PutDevices(names, source, positions, cluster));
  return cluster;
}

absl::StatusOr<ClusterSpec> LoadClusterSpec(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a folder; expected a cluster file"));
  }
  // One byte more than is accepted.
  absl::optional<std::string> text = FileText(path, kYamlBytesMax + 1);
  if (!text.has_value()) {
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot open the cluster file; is it there?"));
  }
  return ParseClusterSpec({.name = path, .text = *std::move(text)});
}

}  // namespace troupe
