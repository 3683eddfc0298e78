#include "clients/cluster_file/check_cluster.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "clients/cluster_file/cluster_file.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr char kCluster[] =
    "nodes: [{count: 2, workers: 8, device: gpu}]\n"
    "devices:\n"
    "  gpu:\n"
    "    matmul: [{dtype: bf16, m: 8192, n: 8192, k: 8192, tflops: 250}]\n"
    "    attention: [{dtype: bf16, length: 2048, head_dim: 128, "
    "forward_tflops: 190, backward_tflops: 150}]\n"
    "    memory: {device: {size_gib: 80, bandwidth_gb_s: 2000}}\n"
    "links:\n"
    "  intra_node: {latency_us: 5, bandwidth_gb_s: 230}\n"
    "  inter_node: {latency_us: 15, bandwidth_gb_s: 23}\n";

// What is wrong with the cluster once `from` stands as `to`.
std::string Wrong(const char* from, const char* to) {
  const std::string text = absl::StrReplaceAll(kCluster, {{from, to}});
  EXPECT_NE(text, kCluster) << from;
  return std::string(
      ParseClusterSpec({.name = "c.yaml", .text = text}).status().message());
}

TEST(CheckCluster, FillsInDefaults) {
  const ClusterSpec cluster =
      ParseClusterSpec(
          {.name = "c.yaml",
           .text = absl::StrReplaceAll(kCluster, {{"count: 2, ", ""}})})
          .value();
  EXPECT_EQ(cluster.nodes(0).count(), 1);
  EXPECT_EQ(cluster.nodes(0).device().kind(), "gpu");
  EXPECT_EQ(cluster.nodes(0).device().overhead_us(), 5);
}

// The same with nodes that have these adapters.
std::string WrongNics(const char* nics) {
  const std::string text = absl::StrReplaceAll(
      kCluster, {{"workers: 8, device: gpu",
                  absl::StrCat("workers: 8, device: gpu, nics: ", nics)},
                 {", bandwidth_gb_s: 23}", "}"}});
  return std::string(
      ParseClusterSpec({.name = "c.yaml", .text = text}).status().message());
}

TEST(CheckCluster, EachWorkerOfANodeWithAdaptersHasOne) {
  EXPECT_EQ(WrongNics("[{bandwidth_gb_s: 12.5}]"), "");
  EXPECT_EQ(WrongNics("[{count: 4, bandwidth_gb_s: 12.5}]"), "");
  EXPECT_EQ(WrongNics("[{bandwidth_gb_s: 9, devices: [0, 1, 2, 3]}, "
                      "{bandwidth_gb_s: 9, devices: [4, 5, 6, 7]}]"),
            "");
  EXPECT_EQ(WrongNics("[{bandwidth_gb_s: 9, devices: [0, 1]}]"),
            "c.yaml:1:51: nodes[0].nics: none serves place 2; add it to the "
            "devices of one");
  EXPECT_EQ(WrongNics("[{bandwidth_gb_s: 9, devices: [0, 8]}]"),
            "c.yaml:1:85: nodes[0].nics[0].devices[1]: 8; use a place of the "
            "node, 0 to 7");
  EXPECT_EQ(WrongNics("[{bandwidth_gb_s: 9, devices: [3, 3]}]"),
            "c.yaml:1:85: nodes[0].nics[0].devices[1]: 3; it is there twice");
  EXPECT_EQ(WrongNics("[{count: 2}]"),
            "c.yaml:1:52: nodes[0].nics[0].bandwidth_gb_s: missing; use more "
            "than 0, up to 1000000");
  EXPECT_EQ(WrongNics("[{count: 0, bandwidth_gb_s: 9}]"),
            "c.yaml:1:60: nodes[0].nics[0].count: 0; use 1 to 1024");
}

TEST(CheckCluster, OneFieldSaysHowFastANodeIs) {
  EXPECT_EQ(Wrong("device: gpu}", "device: gpu, nics: [{bandwidth_gb_s: 9}]}"),
            "c.yaml:9:48: links.inter_node.bandwidth_gb_s: all nodes have "
            "nics, whose bandwidth_gb_s says it; leave it out");
  EXPECT_EQ(Wrong("count: 2, workers: 8, device: gpu}",
                  "workers: 8, device: gpu, nics: [{bandwidth_gb_s: 9}]}, "
                  "{workers: 8, device: gpu}"),
            "");
}

TEST(CheckCluster, RefusesWhatIsAbsurdWithThePlace) {
  EXPECT_EQ(Wrong("count: 2", "count: 0"),
            "c.yaml:1:17: nodes[0].count: 0; use 1 to 100000");
  EXPECT_EQ(Wrong("workers: 8", "workers: -8"),
            "c.yaml:1:29: nodes[0].workers: -8; use 1 to 1024");
  EXPECT_EQ(Wrong("m: 8192, n", "m: 0, n"),
            "c.yaml:4:31: devices.gpu.matmul[0].m: 0; use 1 to 16777216");
  EXPECT_EQ(Wrong("tflops: 250", "tflops: -250"),
            "c.yaml:4:63: devices.gpu.matmul[0].tflops: -250; use more than "
            "0, up to 100000");
  EXPECT_EQ(Wrong("size_gib: 80", "size_gib: 0"),
            "c.yaml:6:33: devices.gpu.memory.device.size_gib: 0; use more "
            "than 0, up to 10000000");
  EXPECT_EQ(Wrong("bandwidth_gb_s: 23}", "bandwidth_gb_s: 23e9}"),
            "c.yaml:9:48: links.inter_node.bandwidth_gb_s: 2.3e+10; use more "
            "than 0, up to 1000000");
  EXPECT_EQ(Wrong("latency_us: 15", "latency_us: -1"),
            "c.yaml:9:28: links.inter_node.latency_us: -1; use 0 to 10000000");
  EXPECT_EQ(Wrong("latency_us: 15", "latency_us: .nan"),
            "c.yaml:9:28: links.inter_node.latency_us: expected a number, "
            "found the text \".nan\"");
  EXPECT_EQ(Wrong("latency_us: 15", "latency_us: nan"),
            "c.yaml:9:28: links.inter_node.latency_us: expected a finite "
            "number, found the number nan");
  EXPECT_EQ(
      Wrong("dtype: bf16, m", "dtype: fp8, m"),
      "c.yaml:4:22: devices.gpu.matmul[0].dtype: fp8; use f32, bf16 or fp16");
  EXPECT_EQ(Wrong("    matmul", "    kind: tpu\n    matmul"),
            "c.yaml:4:11: devices.gpu.kind: tpu; use gpu or cpu");
}

TEST(CheckCluster, RefusesADatasheetThatCannotBe) {
  const auto wrong = [](const char* datasheet) {
    return Wrong("    memory: {device: {size_gib: 80",
                 absl::StrCat("    datasheet: ", datasheet,
                              "\n    memory: {device: {size_gib: 80")
                     .c_str());
  };
  EXPECT_EQ(wrong("[{dtype: bf16, tflops: 312}, {dtype: f32, tflops: 19.5}]"),
            "");
  EXPECT_EQ(wrong("[{dtype: fp8, tflops: 600}]"),
            "c.yaml:6:25: devices.gpu.datasheet[0].dtype: fp8; use f32, bf16 "
            "or fp16");
  EXPECT_EQ(wrong("[{dtype: bf16}]"),
            "c.yaml:6:17: devices.gpu.datasheet[0].tflops: missing; use more "
            "than 0, up to 100000");
  EXPECT_EQ(wrong("[{dtype: f32, tflops: 9}, {dtype: f32, tflops: 8}]"),
            "c.yaml:6:50: devices.gpu.datasheet[1].dtype: f32; it is there "
            "twice");
  EXPECT_EQ(wrong("[{dtype: bf16, tflops: 200}]"),
            "c.yaml:4:63: devices.gpu.matmul[0].tflops: 250; the datasheet "
            "states 200 in bf16, which no product exceeds; correct one");
}

TEST(CheckCluster, RefusesWhatIsMissingWhereItWouldStand) {
  EXPECT_EQ(Wrong("workers: 8, ", ""),
            "c.yaml:1:9: nodes[0].workers: missing; use 1 to 1024");
  EXPECT_EQ(Wrong(", tflops: 250", ""),
            "c.yaml:4:14: devices.gpu.matmul[0].tflops: missing; use more "
            "than 0, up to 100000");
  EXPECT_EQ(
      Wrong("    memory: {device: {size_gib: 80, bandwidth_gb_s: 2000}}\n", ""),
      "c.yaml:4:5: devices.gpu.memory.device.size_gib: missing; use "
      "more than 0, up to 10000000");
  EXPECT_EQ(Wrong("  inter_node: {latency_us: 15, bandwidth_gb_s: 23}\n", ""),
            "c.yaml:8:3: links.inter_node.latency_us: missing; use 0 to "
            "10000000");
  EXPECT_EQ(Wrong("nodes: [{count: 2, workers: 8, device: gpu}]\n", ""),
            "c.yaml:1:1: nodes: missing; as in nodes: [{count: 2, workers: 8, "
            "device: {...}}]");
}

// A cluster of one node needs no network.
TEST(CheckCluster, WantsNoLinkThatNothingUses) {
  EXPECT_EQ(Wrong("count: 2", "count: 1"), "");
  const std::string alone = absl::StrReplaceAll(
      kCluster, {{"count: 2, workers: 8", "count: 1, workers: 1"},
                 {"  intra_node: {latency_us: 5, bandwidth_gb_s: 230}\n", ""},
                 {"  inter_node: {latency_us: 15, bandwidth_gb_s: 23}\n", ""}});
  EXPECT_TRUE(ParseClusterSpec({.name = "c.yaml", .text = alone}).ok());
}

}  // namespace
}  // namespace troupe
