def test_x(conn, settings):
    assert conn.execute("select count(*) from duebook.environment").fetchone() == (1,)
