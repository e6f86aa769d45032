-- What did a provider change afterwards? Each version beside the one before it.
with versions as (
    select
        provider_account,
        entry_id,
        version,
        source,
        net_minor,
        lag(net_minor) over (
            partition by provider_account, entry_id
            order by version
        ) as net_minor_before
    from duebook_reports.settlement_entries
)

select
    provider_account,
    entry_id,
    version,
    source,
    net_minor_before,
    net_minor,
    net_minor - net_minor_before as change_minor
from versions
where net_minor_before is not null
order by provider_account, entry_id, version;
