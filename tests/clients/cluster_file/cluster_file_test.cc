#include "clients/cluster_file/cluster_file.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "clients/job_file/fill_message.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// A cluster whose two sorts of nodes have these devices.
std::string Nodes(const std::string& first, const std::string& second) {
  return "nodes:\n- {count: 2, workers: 8, device: " + first +
         "}\n- {count: 1, workers: 4, device: " + second +
         "}\n"
         "links: {intra_node: {latency_us: 5, bandwidth_gb_s: 230}, "
         "inter_node: {latency_us: 15, bandwidth_gb_s: 23}}\n";
}

constexpr char kInline[] =
    "{kind: cpu, matmul: [{dtype: f32, m: 64, n: 64, k: 64, tflops: 1}], "
    "memory: {device: {size_gib: 8, bandwidth_gb_s: 50}}}";
constexpr char kDevices[] =
    "devices: {big: {matmul: [{dtype: bf16, m: 9, n: 9, k: 9, tflops: 250}], "
    "memory: {device: {size_gib: 80, bandwidth_gb_s: 2000}}}}\n";

std::string Error(const std::string& text) {
  return std::string(
      ParseClusterSpec({.name = "c.yaml", .text = text}).status().message());
}

TEST(ClusterFile, ADeviceIsANameOrADescription) {
  const auto cluster = ParseClusterSpec(
      {.name = "c.yaml", .text = Nodes("big", kInline) + kDevices});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ASSERT_EQ(cluster->nodes_size(), 2);
  EXPECT_EQ(cluster->nodes(0).count(), 2);
  EXPECT_EQ(cluster->nodes(0).device().matmul(0).tflops(), 250);
  EXPECT_EQ(cluster->nodes(0).device().kind(), "gpu");
  EXPECT_EQ(cluster->nodes(1).device().kind(), "cpu");
  EXPECT_EQ(cluster->links().inter_node().bandwidth_gb_s(), 23);
}

TEST(ClusterFile, SaysWhichDevicesThereAre) {
  EXPECT_EQ(Error(Nodes("bgi", kInline) + kDevices),
            "c.yaml:2:34: nodes[0].device: no device is called bgi; did you "
            "mean big?");
  EXPECT_EQ(Error(Nodes("zebra", kInline) + kDevices),
            "c.yaml:2:34: nodes[0].device: no device is called zebra; use big");
  EXPECT_EQ(Error(Nodes("a100", kInline)),
            "c.yaml:2:34: nodes[0].device: no device is called a100; describe "
            "it, as in devices: {a100: {matmul: [...], memory: {...}}}");
  EXPECT_EQ(Error("nodes: [{workers: 1}]"),
            "c.yaml:1:9: nodes[0].device: missing; describe it here, or name "
            "one of the devices");
}

TEST(ClusterFile, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(Error("nods: []"),
            "c.yaml:1:1: nods: no such field; did you mean "
            "nodes?");
  EXPECT_EQ(Error("nodes: [{wokers: 1}]"),
            "c.yaml:1:10: nodes[0].wokers: no such field; did you mean "
            "workers?");
  EXPECT_EQ(Error("nodes: 8"),
            "c.yaml:1:8: nodes: expected a list, as in nodes: [...], found the "
            "number 8");
  EXPECT_EQ(Error(""), "c.yaml:1:1: the cluster file is empty");
  EXPECT_EQ(LoadClusterSpec("/no/such.yaml").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ClusterFile, TheExamplesAreValid) {
  for (const char* name : {"a100", "h100"}) {
    const auto cluster =
        LoadClusterSpec(std::string("clients/examples/") + name + ".yaml");
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ(cluster->nodes(0).workers(), 8);
  }
}

// The first cell of each table row that is a path in backticks.
std::set<std::string> DocumentedPaths() {
  std::ifstream in("docs/cluster.md");
  EXPECT_TRUE(in.good());
  std::set<std::string> paths;
  std::string line;
  while (std::getline(in, line)) {
    const std::vector<std::string> parts = absl::StrSplit(line, '`');
    if (parts.size() < 3 || parts[0] != "| ") continue;
    EXPECT_TRUE(paths.insert(parts[1]).second) << parts[1] << " twice";
  }
  return paths;
}

// docs/cluster.md: every field has its row, every row its field.
TEST(ClusterFile, EveryFieldIsInTheReference) {
  std::set<std::string> paths;
  for (const std::string& path : FieldPaths(*ClusterSpec::descriptor())) {
    // A node's device has the fields of the devices.
    if (path.rfind("nodes.device.", 0) == 0) continue;
    paths.insert(path);
  }
  for (const std::string& path : FieldPaths(*DeviceSpec::descriptor())) {
    paths.insert("devices.NAME." + path);
  }
  paths.erase("devices");
  paths.insert("nodes.device");
  EXPECT_EQ(DocumentedPaths(), paths);
}

}  // namespace
}  // namespace troupe
