#include "adapters/served/client.h"

namespace assay::served {
namespace {

Answer answer_of(std::string_view body) {
  return static_cast<Answer>(static_cast<std::uint8_t>(body.front()));
}

std::unexpected<Error> nonsense() {
  return fail(ErrorKind::child, "the server's answer does not fit the request");
}

}  // namespace

Result<std::unique_ptr<Client>> Client::connect(const std::string& socket) {
  int code = 0;
  const Result<int> opened = open_socket(socket, Use::connect, code);
  if (!opened) return std::unexpected(opened.error());
  return over(*opened, socket);
}

Result<std::unique_ptr<Client>> Client::over(int socket, const std::string& peer) {
  std::unique_ptr<Client> client(new Client(socket));
  const Result<std::string_view> greeting = client->answer();
  if (!greeting) return std::unexpected(greeting.error());
  const Result<std::uint64_t> version = decode_u64(greeting->substr(1));
  if (!version || *version != kProtocolVersion) {
    return fail(Error(ErrorKind::child, "what listens speaks another protocol").at(peer));
  }
  return client;
}

Result<std::string_view> Client::exchange() {
  ASSAY_TRY(channel_.send(frame_));
  return answer();
}

Result<std::string_view> Client::answer() {
  std::string_view body;
  const Result<bool> got = channel_.receive(body);
  if (!got) return std::unexpected(got.error());
  if (!*got) return fail(ErrorKind::child, "the server ended the connection");
  if (answer_of(body) == Answer::error) return fail(decode_error(body.substr(1)));
  return body;
}

Result<std::string_view> Client::ask(Op op) {
  frame_.clear();
  ASSAY_TRY(
      encode_request({.op = op, .key = {}, .value = {}, .mutations = {}, .range = {}}, frame_));
  const Result<std::string_view> body = exchange();
  if (!body) return body;
  if (answer_of(*body) != Answer::done) return nonsense();
  return body->substr(1);
}

Status Client::change(Status encoded) {
  ASSAY_TRY(std::move(encoded));
  const Result<std::string_view> body = exchange();
  if (!body) return std::unexpected(body.error());
  if (answer_of(*body) != Answer::done) return nonsense();
  return {};
}

Result<bool> Client::get(std::string_view key, std::string_view& value) {
  frame_.clear();
  ASSAY_TRY(encode_request({.op = Op::get, .key = key, .value = {}, .mutations = {}, .range = {}},
                           frame_));
  const Result<std::string_view> body = exchange();
  if (!body) return std::unexpected(body.error());
  if (answer_of(*body) == Answer::absent) return false;
  if (answer_of(*body) != Answer::done) return nonsense();
  value = body->substr(1);
  return true;
}

Status Client::put(std::string_view key, std::string_view value) {
  frame_.clear();
  return change(encode_request(
      {.op = Op::put, .key = key, .value = value, .mutations = {}, .range = {}}, frame_));
}

Status Client::erase(std::string_view key) {
  frame_.clear();
  return change(encode_request(
      {.op = Op::erase, .key = key, .value = {}, .mutations = {}, .range = {}}, frame_));
}

Status Client::apply(std::span<const Mutation> mutations) {
  frame_.clear();
  return change(encode_batch(Op::batch, mutations, frame_));
}

Status Client::rollback(std::span<const Mutation> mutations) {
  frame_.clear();
  return change(encode_batch(Op::rollback, mutations, frame_));
}

Result<std::uint64_t> Client::scan(const ScanRange& range, ScanSink& sink) {
  frame_.clear();
  ASSAY_TRY(encode_request(
      {.op = Op::scan, .key = {}, .value = {}, .mutations = {}, .range = range}, frame_));
  std::uint64_t visited = 0;
  bool wanted = true;
  for (;;) {
    const Result<std::string_view> body = exchange();
    if (!body) return std::unexpected(body.error());
    const Answer answer = answer_of(*body);
    if (answer != Answer::entries && answer != Answer::done) return nonsense();
    std::string_view entries = body->substr(1);
    while (wanted && !entries.empty()) {
      std::string_view key;
      std::string_view value;
      if (!take_entry(entries, key, value)) return nonsense();
      ++visited;
      wanted = sink.entry(key, value);
    }
    if (answer == Answer::done) return visited;
    frame_.clear();
    ASSAY_TRY(encode_request(
        {.op = wanted ? Op::more : Op::stop, .key = {}, .value = {}, .mutations = {}, .range = {}},
        frame_));
  }
}

}  // namespace assay::served
