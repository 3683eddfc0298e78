#include "proto/trust/grpc/credentials.h"

#include <cstdlib>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/trust/grpc/grpc_log.h"
#include "proto/trust/member_files.h"
#include "proto/trust/refused_peers.h"

namespace troupe {
namespace {

namespace tls = grpc::experimental;

constexpr unsigned kReadAgainSeconds = 60;

// gRPC 1.51 speaks TLS 1.2 as well, and has no switch for it; but it takes a
// list of TLS 1.2's cipher suites from the environment, once. This one needs a
// key that both sides share beforehand. Nobody has one, so no handshake of TLS
// 1.2 succeeds; those of 1.3 have suites of their own.
void AllowTls13Only() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    setenv("GRPC_SSL_CIPHER_SUITES", "ECDHE-PSK-CHACHA20-POLY1305",
           /*overwrite=*/1);
  });
}

std::string Text(grpc::string_ref text) {
  return std::string(text.data(), text.size());
}

// After the handshake: the peer's certificate has one of these roles.
class RoleVerifier final : public tls::ExternalCertificateVerifier {
 public:
  explicit RoleVerifier(std::vector<PeerRole> roles)
      : roles_(std::move(roles)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    *status = Check(*request);
    return true;  // at once
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  grpc::Status Check(
      const tls::TlsCustomVerificationCheckRequest& request) const {
    for (const grpc::string_ref& uri : request.uri_names()) {
      const absl::optional<PeerRole> role = RoleOfUri(Text(uri));
      for (const PeerRole wanted : roles_) {
        if (role == wanted) return grpc::Status::OK;
      }
    }
    const std::string what = absl::StrCat(
        "the peer's certificate (", OneLine(Text(request.common_name()), 100),
        ") is not that of a ", RoleName(roles_[0]));
    TellOfRefusedPeer(Door::kGrpc, what);
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, what);
  }

  const std::vector<PeerRole> roles_;
};

// At each RPC: the peer's role is that of the service.
class AccessByRole final : public grpc::AuthMetadataProcessor {
 public:
  explicit AccessByRole(std::vector<ServiceAccess> services)
      : services_(std::move(services)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata,
                       grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const auto path = metadata.find(":path");
    const std::string rpc = path == metadata.end() ? "" : Text(path->second);
    const PeerRole wanted = RoleFor(rpc);
    for (const grpc::string_ref& uri :
         context->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
      if (RoleOfUri(Text(uri)) == wanted) return grpc::Status::OK;
    }
    const std::string what =
        absl::StrCat(OneLine(rpc, 100), " is for a ", RoleName(wanted),
                     "; the certificate of who asks is that of something else");
    TellOfRefusedPeer(Door::kGrpc, what);
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, what);
  }

 private:
  PeerRole RoleFor(const std::string& rpc) const {
    for (const ServiceAccess& service : services_) {
      if (absl::StartsWith(rpc, service.prefix)) return service.role;
    }
    return PeerRole::kClient;
  }

  const std::vector<ServiceAccess> services_;
};

void UseFiles(const std::string& directory, std::vector<PeerRole> peers,
              tls::TlsCredentialsOptions& options) {
  AllowTls13Only();
  TakeLogOfGrpc();
  const MemberFiles files = FilesOfMember(directory);
  options.set_certificate_provider(
      std::make_shared<tls::FileWatcherCertificateProvider>(
          files.key, files.certificate, files.authority, kReadAgainSeconds));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<RoleVerifier>(std::move(peers)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentials(
    const PeerTrust& trust, PeerRole role, absl::string_view scheduler) {
  RETURN_IF_ERROR(CheckTrust(trust, role, scheduler, absl::Now()));
  if (trust.insecure > 0) return grpc::InsecureChannelCredentials();
  tls::TlsChannelCredentialsOptions options;
  UseFiles(trust.certificates, {PeerRole::kScheduler}, options);
  options.set_verify_server_certs(true);
  return tls::TlsCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(
    const PeerTrust& trust, std::vector<ServiceAccess> services,
    absl::string_view listen) {
  RETURN_IF_ERROR(CheckTrust(trust, PeerRole::kScheduler, listen, absl::Now()));
  if (trust.insecure > 0) return grpc::InsecureServerCredentials();
  tls::TlsServerCredentialsOptions options(nullptr);
  UseFiles(trust.certificates, {PeerRole::kWorker, PeerRole::kClient}, options);
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  std::shared_ptr<grpc::ServerCredentials> credentials =
      tls::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(
      std::make_shared<AccessByRole>(std::move(services)));
  return credentials;
}

}  // namespace troupe
