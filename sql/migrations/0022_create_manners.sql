-- How a recipient is treated: topics that he can leave, no more than so many messages in a time,
-- several notices in one message, and another channel where one refuses.

alter table duebook.intent_kind
add column may_unsubscribe boolean not null default false,
add column is_critical boolean not null default false,
add column digest_within interval,
add column digest_most integer,
add column fail_over text[] not null default '{}';
alter table duebook.intent_kind
add constraint digest_is_whole_or_absent
check (
    (digest_within is null) = (digest_most is null)
    and digest_within >= interval '0'
    and digest_most between 2 and 1000
) not valid;
-- squawk-ignore constraint-missing-not-valid
alter table duebook.intent_kind validate constraint digest_is_whole_or_absent;
comment on column duebook.intent_kind.may_unsubscribe is
'Whether its messages say how to leave the topic (RFC 8058).';
comment on column duebook.intent_kind.is_critical is 'Whether the contact cap does not hold it back.';
comment on column duebook.intent_kind.digest_within is
'Notices of one account that are due within this go in one message; null: each in its own.';
comment on column duebook.intent_kind.digest_most is 'Most notices of one message.';
comment on column duebook.intent_kind.fail_over is
'Channels that are tried in turn once one has refused for good.';

create table duebook.contact_cap (
    channel text primary key,
    most integer not null,
    per interval not null,
    constraint cap_is_positive check (most > 0 and per > interval '0')
);
comment on table duebook.contact_cap is
'The most messages that one account is sent in a time; critical kinds are not counted and not held back.';
comment on column duebook.contact_cap.channel is 'Channel that it counts, * for all channels together.';
comment on column duebook.contact_cap.most is 'Most messages.';
comment on column duebook.contact_cap.per is 'In any time of this length.';

create table duebook.contact_slot (
    account_id text not null,
    intent_id bigint not null,
    channel text not null,
    taken_at timestamptz not null,
    primary key (account_id, intent_id)
);
create index contact_slot_by_time on duebook.contact_slot (taken_at);
create index contact_slot_by_account on duebook.contact_slot (account_id, taken_at);
comment on table duebook.contact_slot is
'Messages that a contact cap counts, each entered before it is sent; removed once no cap looks back so far.';
comment on column duebook.contact_slot.account_id is 'Customer account.';
comment on column duebook.contact_slot.intent_id is 'Intent; of a digest the first.';
comment on column duebook.contact_slot.channel is 'Channel.';
comment on column duebook.contact_slot.taken_at is 'When it was allowed.';

create table duebook.digest (
    account_id text not null,
    digest_key text not null,
    channel text not null,
    intent_ids bigint[] not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (account_id, digest_key),
    constraint digest_has_members check (cardinality(intent_ids) > 1)
);
comment on table duebook.digest is
'Several notices in one message: who is in it was fixed before anything was sent. Append-only.';
comment on column duebook.digest.account_id is 'Customer account.';
comment on column duebook.digest.digest_key is 'Its own key, made from those of its members; the message is identified by it.';
comment on column duebook.digest.channel is 'Channel.';
comment on column duebook.digest.intent_ids is 'Intents in their order; each has an outcome of its own.';
comment on column duebook.digest.created_at is 'When it was fixed.';

create table duebook.digest_member (
    account_id text not null,
    intent_id bigint not null,
    attempt_no integer not null,
    digest_key text not null,
    primary key (account_id, intent_id, attempt_no)
);
comment on table duebook.digest_member is
'Attempts that were made by a digest. Append-only.';
comment on column duebook.digest_member.account_id is 'Customer account.';
comment on column duebook.digest_member.intent_id is 'Intent.';
comment on column duebook.digest_member.attempt_no is 'Attempt.';
comment on column duebook.digest_member.digest_key is 'Digest that it went in.';

create table duebook.fail_over (
    account_id text not null,
    intent_id bigint not null,
    to_intent_id bigint not null,
    at timestamptz not null default clock_timestamp(),
    primary key (account_id, intent_id)
);
comment on table duebook.fail_over is
'Intents that were refused for good, and those that took their place on another channel. Append-only.';
comment on column duebook.fail_over.account_id is 'Customer account.';
comment on column duebook.fail_over.intent_id is 'Refused intent.';
comment on column duebook.fail_over.to_intent_id is 'The same notice on the next channel.';
comment on column duebook.fail_over.at is 'When.';
