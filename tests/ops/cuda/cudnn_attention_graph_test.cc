// Whether cuDNN recognises our graphs and has kernels for them that give the
// same bits each time. It plans for GPUs that are only described, so none is
// needed, and a driver that says yes to everything stands in for one that there
// is not. What cuDNN computes, tests/ops/attention_test sees where there is a
// GPU; there this skips, as what is planned for others cannot be loaded.
#include "ops/cuda/cudnn_attention_graph.h"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "ops/cuda/cudnn_descriptor.h"
#include "ops/cuda/cudnn_library.h"
#include "proto/base/check.h"
#include "proto/base/gpu_limits.h"

namespace troupe::cuda {
namespace {

struct DescribedGpu {
  std::string name;
  std::string capability;  // 900 is 9.0
  std::string multiprocessors;
  std::string shared_bytes;  // of a block
};

const DescribedGpu kGpus[] = {{"A100", "800", "108", "166912"},
                              {"H100", "900", "132", "232448"},
                              {"B200", "1000", "148", "232448"}};

std::string Properties(const DescribedGpu& gpu) {
  return R"({"deviceName": ")" + gpu.name + R"(", "deviceVer": )" +
         gpu.capability + R"(, "multiProcessorCount": )" + gpu.multiprocessors +
         R"(, "maxSharedMemoryPerBlockOptin": )" + gpu.shared_bytes +
         R"(, "cudaDeviceId": 0, "driverVer": 13000,
             "totalGlobalMem": 85899345920,
             "maxGridSize": [2147483647, 65535, 65535],
             "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
             "smClockRateKHz": 1755000, "memClockRateKHz": 2619000,
             "l2CacheSize": 41943040, "warpSize": 32,
             "maxSharedMemoryPerBlock": 49152,
             "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
             "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
             "maxThreadsPerSM": 2048, "isTccDriver": 0,
             "supportCoopLaunch": 1})";
}

struct Case {
  bool backward = false;
  DType type = DType::kBF16;
  int64_t kv_heads = 2;
  int64_t head_dim = 64;
  int64_t q_length = 256;
  int64_t kv_length = 0;  // 0: as many
};

constexpr int64_t kBatch = 2, kHeads = 8;

// q, k and v in one tensor, as layers have them, and their gradients.
CudnnAttentionShape ShapeOf(const Case& c) {
  const int64_t length = std::max(c.q_length, c.kv_length);
  const int64_t all = (kHeads + 2 * c.kv_heads) * c.head_dim;
  const CudnnAttentionShape::Strides wide = {length * all, all};
  const CudnnAttentionShape::Strides narrow = {c.q_length * kHeads * c.head_dim,
                                               kHeads * c.head_dim};
  return {.backward = c.backward,
          .type = c.type,
          .batch = kBatch,
          .heads = kHeads,
          .kv_heads = c.kv_heads,
          .q_length = c.q_length,
          .kv_length = length,
          .head_dim = c.head_dim,
          .q = wide,
          .k = wide,
          .v = wide,
          .o = narrow,
          .d_o = narrow,
          .dq = wide,
          .dk = wide,
          .dv = wide};
}

// Loads the stand-in under the driver's name, by which cuDNN looks for it.
// False where there is a driver.
bool StandInForTheDriver() {
  static const bool stands_in = [] {
    if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) return false;
    CHECK(dlopen("tests/ops/cuda/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL))
        << dlerror();
    return true;
  }();
  return stands_in;
}

class CudnnAttentionGraphTest : public testing::TestWithParam<DescribedGpu> {
 protected:
  void SetUp() override {
    absl::StatusOr<CudnnLibrary> library = CudnnLibrary::Load();
    if (!library.ok()) GTEST_SKIP() << library.status();
    if (!StandInForTheDriver()) GTEST_SKIP() << "there is a driver";
    library_ = *library;
    auto properties =
        CudnnDescriptor::Create(library_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    ASSERT_TRUE(properties.ok()) << properties.status();
    properties_ = std::make_unique<CudnnDescriptor>(*std::move(properties));
    const std::string text = Properties(GetParam());
    ASSERT_TRUE(
        properties_
            ->SetAll<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, text)
            .ok());
    const absl::Status done = properties_->Finalize();
    ASSERT_TRUE(done.ok()) << done;
  }

  // That takes no more memory than the planner counts.
  void ExpectPlan(const Case& c) {
    const CudnnAttentionShape shape = ShapeOf(c);
    const absl::StatusOr<CudnnPlan> plan =
        CudnnAttentionGraph(library_, shape)
            .Plan({.properties = properties_->get()});
    ASSERT_TRUE(plan.ok()) << plan.status() << (c.backward ? ", backward" : "")
                           << ", " << c.kv_heads << " heads of keys of "
                           << c.head_dim << ", " << shape.q_length << " by "
                           << shape.kv_length;
    EXPECT_LE(plan->workspace_bytes,
              GpuAttentionWorkBytes({.samples = kBatch,
                                     .heads = kHeads,
                                     .kv_heads = c.kv_heads,
                                     .q_length = shape.q_length,
                                     .kv_length = shape.kv_length,
                                     .head_dim = shape.head_dim}));
    if (!c.backward) {
      EXPECT_LE(plan->workspace_bytes, 4096);
    }
  }

  CudnnLibrary library_;
  std::unique_ptr<CudnnDescriptor> properties_;
};

// Both types, few and all heads sharing keys, the narrowest and the widest
// heads, whole and broken tiles, and queries of more keys.
TEST_P(CudnnAttentionGraphTest, HasKernelsThatGiveTheSameBits) {
  for (const bool backward : {false, true}) {
    ExpectPlan({.backward = backward, .q_length = 1024});
    ExpectPlan({.backward = backward,
                .type = DType::kF16,
                .kv_heads = 8,
                .head_dim = 128,
                .q_length = 1000});
    ExpectPlan(
        {.backward = backward, .kv_heads = 1, .head_dim = 8, .q_length = 2});
    ExpectPlan({.backward = backward,
                .type = DType::kF16,
                .head_dim = 120,
                .q_length = 300,
                .kv_length = 1000});
  }
}

INSTANTIATE_TEST_SUITE_P(, CudnnAttentionGraphTest, testing::ValuesIn(kGpus),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::cuda
